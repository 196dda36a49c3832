# timeout: 120
report translated ruby "$programs/mix.rb"
report translated ruby -e 'raise "uncaught"'
