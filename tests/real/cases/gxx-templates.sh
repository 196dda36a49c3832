# Templates, exceptions through many frames, threads; the compiler first, then what it made.
# timeout: 120
report translated --children g++ -std=c++20 -O1 "$programs/templates.cpp" -o program && md5sum <program
report translated ./program
(ulimit -c 0; report translated ./program throw) 2>&1
