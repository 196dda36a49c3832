# Exceptions through optimised frames, stack overflow, rejected promises, and the exit statuses they lead to.
# timeout: 120
report translated node "$programs/exceptions.js"
for script in 'throw new Error("uncaught")' 'Promise.reject(new Error("rejected"))' 'process.exit(44)' 'process.abort()' 'process.kill(process.pid, "SIGTERM"); setTimeout(()=>{}, 9e3)'; do
	(ulimit -c 0; report translated node -e "$script" 2>/dev/null)
done
