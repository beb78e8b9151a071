# The target of a handoff dies while the seat is being torn down at its source: the
# handoff is abandoned, and the seat is given back plainly once it is down, never left
# as it is (design section 5).
seed 1
ttl 15s
nodes a
seats s1 s2
mail 1s
for 2m
at 20s down node=a how=hang times=1 for=40s
at 21s join node=b
at 31s crash node=b for=1s
