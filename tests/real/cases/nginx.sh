# Master and two workers, all translated (the workers are forks), with threads that read files, under a bounded load;
# then reload and quit by signal.
# timeout: 120
port=$(free_port)
mkdir -p www logs temp
chmod 777 logs temp
cp /usr/share/common-licenses/* www/ && head -c 300000 /dev/zero >www/zeros
cat >nginx.conf <<END
$([[ $EUID == 0 ]] && echo 'user nobody nogroup;')
daemon off;
worker_processes 2;
pid nginx.pid;
error_log logs/error.log info;
events { worker_connections 128; }
http {
	access_log logs/access.log;
	client_body_temp_path temp/body; proxy_temp_path temp/proxy; fastcgi_temp_path temp/fastcgi;
	uwsgi_temp_path temp/uwsgi; scgi_temp_path temp/scgi;
	gzip on; gzip_types *; gzip_min_length 100;
	sendfile on;
	aio threads;
	server {
		listen 127.0.0.1:$port;
		root www;
		location = /zeros { sendfile off; output_buffers 2 64k; }
		location = /status { return 200 "alive\n"; }
		location /proxied/ { proxy_pass http://127.0.0.1:$port/; }
		location ~ ^/rewrite/(\d+)\$ { return 302 /\$1; }
	}
}
END
url=http://127.0.0.1:$port
translated --children nginx -p "$PWD" -c nginx.conf -e logs/error.log &
server=$!
wait_for 40 curl -sf $url/status
wait_for 20 test -s nginx.pid

for path in status GPL-3 proxied/zeros rewrite/12; do
	ab -q -k -n 1500 -c 16 $url/$path | grep -E '^(Complete|Failed|Non-2xx|Document Length)' | tr -s ' '
done
curl -s --compressed $url/GPL-3 | md5sum
curl -s -r 100-199 $url/zeros | md5sum
curl -s -o /dev/null -w '%{http_code}\n' $url/nothing
expect 'number of workers' "$(pgrep -c -P "$(cat nginx.pid)")" 2
cut -d' ' -f9 logs/access.log | sort | uniq -c | grep -v -w 499

old=$(pgrep -P "$(cat nginx.pid)" | sort | tr '\n' ' ')
kill -HUP "$(cat nginx.pid)"
reloaded() { [[ $(pgrep -P "$(cat nginx.pid)" | sort | tr '\n' ' ') != *"${old% }"* ]]; }
wait_for 20 reloaded
curl -s $url/status
kill -QUIT "$(cat nginx.pid)"
wait $server
echo "status $?"
! grep -E '\[(alert|emerg|crit)\]' logs/error.log || fail 'nginx complained'
