# Job control without a terminal: process groups, stop and continue, death by signal as wait reports it.
# When bash notices that a job has ended, and so says so on standard error, depends on the time.
report translated bash "$programs/jobs.sh" 2>/dev/null
