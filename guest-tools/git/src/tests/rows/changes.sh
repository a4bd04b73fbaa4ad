init
mkdir -p src/deep docs
printf 'fn main() {\n    println!("one");\n}\n' > src/main.rs
seq 1 40 > numbers
seq 1 30 > docs/moved.txt
echo gone > gone
echo 'same' > src/deep/same
printf 'no end' > noend
printf 'a\0b' > binary
ln -s numbers link
printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
ci 'First commit

With a body.'
sed -i 's/one/two/' src/main.rs
sed -i '5d;20s/$/ changed/' numbers
git mv docs/moved.txt docs/new.txt
echo 31 >> docs/new.txt
git add docs src/main.rs
sed -i 's/two/three/' src/main.rs
rm gone
printf 'with end\n' > noend
printf 'a\0c' > binary
chmod -x run.sh
ln -sf noend link
echo new > staged-new; git add staged-new
echo untracked > untracked
mkdir -p fresh/dir; echo x > fresh/dir/file; echo y > src/deep/other
mkdir nothing
git add -N untracked
echo second > intended-not
