# loop.sh ROUNDS [WORD...]: starts five short programs a round, each with the words before it
rounds=$1
shift
i=0
while [ $i -lt "$rounds" ]; do
	"$@" /bin/true
	"$@" /bin/echo "$i"
	"$@" /usr/bin/expr $i + 1
	"$@" /usr/bin/basename /usr/share/common-licenses/GPL-3
	"$@" /usr/bin/wc -c /usr/share/common-licenses/BSD
	i=$((i + 1))
done
