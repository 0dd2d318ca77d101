"""What whoever operates the service sees and does.

logs             one line an event, without anybody's words     metrics    what is counted, over all workers
database_errors  what a failing database means for people       backup     copies of a live database, and going back
data_lock        who uses a data directory                      allocator  memory that threads share
"""
