# loop.sh ROUNDS: starts five short programs a round
i=0
while [ $i -lt "$1" ]; do
	/bin/true
	/bin/echo "$i"
	/usr/bin/expr $i + 1
	/usr/bin/basename /usr/share/common-licenses/GPL-3
	/usr/bin/wc -c /usr/share/common-licenses/BSD
	i=$((i + 1))
done
