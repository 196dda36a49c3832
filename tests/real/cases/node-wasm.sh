# WebAssembly, whose compiled code checks bounds with guard pages and a SIGSEGV handler.
# timeout: 120
report translated node "$programs/wasm.js"
