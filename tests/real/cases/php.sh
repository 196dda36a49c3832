# The interpreter, and opcache's tracing just-in-time compiler.
# timeout: 120
report translated php -n "$programs/mix.php"
for jit in tracing function; do
	report translated php -n -d zend_extension=opcache -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=$jit "$programs/mix.php" jit
done
