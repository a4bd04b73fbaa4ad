init origin
(cd origin; for i in 1 2 3 4; do echo $i >> f; ci "c$i"; done; git branch other HEAD~1; git checkout -q --detach)
git clone -q origin ahead
git -C origin checkout -q main
(cd ahead; git checkout -q -B main origin/main; echo x > mine; ci mine; git checkout -qb topic origin/other; git checkout -q main)
git clone -q origin behind
(cd behind; git reset -q --hard HEAD~2)
git clone -q origin diverged
(cd diverged; git reset -q --hard HEAD~2; echo y > y; ci own; echo y >> y; ci own2)
git clone -q origin same
git clone -q --depth 2 "file://$PWD/origin" shallow
git clone -q origin detached
(cd detached; git checkout -q HEAD~1)
git clone -q origin detached-moved
(cd detached-moved; git checkout -q HEAD~1; echo z > z; ci loose)
git clone -q origin gone
(cd gone; git branch -dr origin/main >/dev/null)
git clone -q -s origin shared
