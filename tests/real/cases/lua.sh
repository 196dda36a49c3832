report translated lua5.4 "$programs/mix.lua"
report translated lua5.4 -e 'error("an error nobody catches")'
