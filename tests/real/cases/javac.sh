# timeout: 180
report translated javac -J-Xmx256m -d . "$programs/Mix.java"
md5sum ./*.class
