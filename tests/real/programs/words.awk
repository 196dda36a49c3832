{
	for (i = 1; i <= NF; i++) {
		word = tolower($i)
		gsub(/[^a-z]/, "", word)
		if (word != "")
			count[word]++
	}
	if (match($0, /[Ll]icen[sc]e/))
		mentions++
	sub(/^ +/, "")
	total += length($0)
}

function fib(n) {
	return n < 2 ? n : fib(n - 1) + fib(n - 2)
}

END {
	for (word in count)
		if (count[word] > 60)
			print count[word], word | "sort -rn"
	close("sort -rn")
	printf "%d lines with a licence, %d characters, fib %d\n", mentions, total, fib(18)
	for (x = 0; x < 20000; x++)
		sum += sin(x) * exp(-x / 1e4) + sqrt(x) + atan2(x, 3) + log(x + 1)
	printf "%.9g %s\n", sum, substr("abcdef", 2, 3)
	print system("exit 3")
}
