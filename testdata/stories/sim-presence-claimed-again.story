# A node that stood still past its TTL lost its presence and claimed it again. Its
# peers took it for ended for ever, and asked it for a handoff in every pass, only
# to abandon it: the node got no seat any more, and FLEET never came to rest.
seed 3
ttl 15s
nodes a b c d
seats s1 s2 s3 s4 s5 s6 s7 s8
mail 1.143s
for 2m38s
at 1m33.912s stop node=a for=20.203s
