for type in 'rsa -b 2048' ed25519 'ecdsa -b 384'; do
	rm -f key key.pub
	translated ssh-keygen -q -t $type -N '' -C tester -f key && ssh-keygen -l -f key.pub | cut -d' ' -f1,3-
	translated ssh-keygen -y -f key | cmp - key.pub && echo "same public key"
	echo message >text && translated ssh-keygen -q -Y sign -f key -n file text 2>/dev/null
	echo "tester $(cat key.pub)" >signers
	translated ssh-keygen -Y verify -f signers -I tester -n file -s text.sig <text | cut -d' ' -f1-4
	rm -f text.sig
done
