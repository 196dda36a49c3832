# Regular expressions are compiled to machine code after their first runs.
# timeout: 120
report translated node -e '
const text = require("fs").readFileSync("/usr/share/common-licenses/GPL-3", "utf8").repeat(20);
const count = (re) => (text.match(re) || []).length;
console.log(count(/\bthe (\w+)/gi), count(/(?<=free )software/g), count(/(\w)\1/g), count(/[^aeiou\s]{5,}/g), count(/^\s*\d+\. .*$/gm));
console.log(text.replace(/(\w+) (\w+)/g, "$2 $1").length, text.split(/[\s,.;:]+/).length, count(/(?:a|b|c|d)+e(?!r)/gu));
let n = 0;
for (let i = 0; i < 3000; i++) n += new RegExp("x{" + (i % 50) + "}y|" + i).test("x".repeat(i % 60) + "y") ? 1 : 0;
console.log(n, /^(a+)+$/.test("a".repeat(18) + "b"), "Straße ÄÖ".replace(/\p{Lu}/gu, "_"));
'
