init
printf '1\n2\n3\n' > both; echo x > theirs-gone; echo y > ours-gone; ci base
git checkout -qb other
printf '1\ntwo\n3\n' > both; git rm -q theirs-gone; echo changed > ours-gone; echo o > added; ci other
git checkout -q main
printf '1\nzwei\n3\n' > both; echo changed > theirs-gone; git rm -q ours-gone; echo m > added; ci main
git merge other > /dev/null || true
