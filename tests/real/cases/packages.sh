# dpkg's and apt's own tools, reading only
translated dpkg-query -W | md5sum
translated dpkg-query -L bash | md5sum
translated dpkg-query -S /usr/bin/env
translated dpkg --compare-versions 1.2~rc1 lt 1.2; echo "status $?"
report translated dpkg-query -W no-such-package
translated apt-cache depends bash 2>/dev/null | md5sum
translated apt-config dump 2>/dev/null | md5sum
translated --children dpkg-deb --version | head -1
