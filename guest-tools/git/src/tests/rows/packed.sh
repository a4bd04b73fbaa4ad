init
for i in $(seq 1 60); do
  seq 1 $((i * 7)) > numbers
  for f in $(seq 1 5); do echo "line $i of $f" >> "file$f"; done
  mkdir -p "dir$((i % 6))"; seq $i $((i + 90)) > "dir$((i % 6))/data"
  ci "commit $i"
done
git tag -m tagged v1
git gc -q --aggressive
git pack-refs --all
echo more >> numbers; ci 'a loose one'
for i in 61 62 63; do seq $i 500 > numbers; ci "commit $i"; done
git repack -q
