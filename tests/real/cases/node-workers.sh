# timeout: 180
report translated node "$programs/workers.js"
