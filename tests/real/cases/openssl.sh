# Hand-written assembly for every CPU feature there is: digests, ciphers, big numbers, elliptic curves.
head -c 4M </dev/zero | tr '\0' 'x' >data
for digest in md5 sha1 sha256 sha512 sha3-256 blake2b512 sm3; do translated openssl dgst -$digest data; done
for cipher in aes-128-cbc aes-256-ctr chacha20 camellia-128-cbc aria-128-ctr; do
	translated openssl enc -$cipher -K 000102030405060708090a0b0c0d0e0f -iv 0f0e0d0c0b0a09080706050403020100 -in data -out cipher 2>/dev/null
	md5sum <cipher
	translated openssl enc -d -$cipher -K 000102030405060708090a0b0c0d0e0f -iv 0f0e0d0c0b0a09080706050403020100 -in cipher 2>/dev/null | cmp - data
done
translated openssl enc -aes-256-cbc -pbkdf2 -pass pass:secret -S 0011223344556677 -in data | md5sum
translated openssl genrsa -out rsa.pem 2048 2>/dev/null && translated openssl rsa -in rsa.pem -check -noout
translated openssl dgst -sha256 -sign rsa.pem -out signature data && translated openssl rsa -in rsa.pem -pubout -out public.pem 2>/dev/null
translated openssl dgst -sha256 -verify public.pem -signature signature data
openssl dgst -sha256 -verify public.pem -signature signature data
for curve in prime256v1 secp384r1; do
	translated openssl ecparam -name $curve -genkey -noout -out ec.pem && translated openssl ec -in ec.pem -check -noout 2>&1 | grep -i valid
	translated openssl req -x509 -new -key ec.pem -subj /CN=test -days 2 -out cert.pem && translated openssl verify -CAfile cert.pem cert.pem
done
translated openssl genpkey -algorithm ed25519 -out ed.pem && translated openssl pkeyutl -sign -rawin -inkey ed.pem -in signature -out ed.sig &&
	translated openssl pkeyutl -verify -rawin -inkey ed.pem -in signature -sigfile ed.sig
translated openssl prime -generate -bits 256 >prime && translated openssl prime $(cat prime) | grep -o 'is prime'
for algorithm in aes-128-gcm sha256; do
	translated openssl speed -seconds 1 -bytes 1024 -evp $algorithm 2>/dev/null | grep -i -c "^$algorithm"
done
report translated openssl dgst -sha256 nosuchfile 2>/dev/null
