# A script hot enough for the optimising compiler, with de-optimisations, typed arrays, closures and garbage collection.
# timeout: 180
report translated node "$programs/hot.js"
report translated node --jitless "$programs/hot.js"
