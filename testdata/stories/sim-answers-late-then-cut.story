# A turn that goes on and on, on a node whose answers take four seconds and which is
# then cut off: its time counts from before the last renewal was sent, not from its
# answer (A3).
seed 1
ttl 15s
nodes a
seats s1 s2
mail 1s
for 1m
at 10s turns seat=s1 how=steady times=1 for=45s
at 10.001s turns seat=s2 how=steady times=1 for=45s
at 14s slow node=a how=answer times=20 for=4s
at 25s cut node=a for=30s
