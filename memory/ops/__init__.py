"""Operating the service.

logs             one line an event, without anybody's words
metrics          counters over all workers, in Prometheus' format
database_errors  what a failing database means for people
backup           copies of a live database, going back, and who uses a data directory
"""
