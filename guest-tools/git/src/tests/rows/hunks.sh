init
cat > code.c <<'X'
#include <stdio.h>

static int one(int a)
{
	return a + 1;
}

static int two(int a)
{
	int b = a;

	b += 2;
	return b;
}

int main(void)
{
	printf("%d\n", one(1));
	printf("%d\n", two(2));
	for (int i = 0; i < 10; i++) {
		printf("%d\n", i);
	}
	return 0;
}
X
for i in $(seq 1 200); do echo "line $((i * 7919 % 211))"; done > shuffled
printf 'a\r\nb\r\nc\r\n' > crlf
seq 1 300 > long
printf 'x\ny\nz' > open
: > empty
for i in $(seq 1 25); do mkdir -p "some/quite/long/directory/name/number-$i/that/goes/on"; seq 1 $((i * i)) > "some/quite/long/directory/name/number-$i/that/goes/on/file.txt"; done
head -c 3000 /dev/zero > zeros
ci base
python3 - <<'X' || sed -i 's/b += 2/b += 3/' code.c
import re
s = open('code.c').read()
s = s.replace('\tb += 2;\n', '\tb += 3;\n\tb -= 1;\n').replace('static int two', 'static int zero(int a)\n{\n\treturn 0;\n}\n\nstatic int two').replace('\treturn 0;\n}\n', '\treturn 1;\n}\n', 1)
open('code.c', 'w').write(s)
X
sort shuffled > s2; mv s2 shuffled
printf 'a\r\nB\r\nc\n' > crlf
sed -i -e '10d;11d;20i new' -e '100,110s/^/x/' -e '150,155d' -e '290a end' long
printf 'x\ny\nz\n' > open
echo 1 > empty
for i in $(seq 1 25); do seq 3 $((i * i + 40)) > "some/quite/long/directory/name/number-$i/that/goes/on/file.txt"; done
head -c 5000 /dev/zero > zeros
