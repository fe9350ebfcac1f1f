// hangs.c: programs that hang in several ways. Each prints "ready" before it hangs.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static volatile unsigned long spins;

static void lock_b(void) { pthread_mutex_lock(&b); }

static void *other(void *x)
{
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&a);
	return x;
}

static void deadlock(void)
{
	pthread_t t;
	pthread_barrier_init(&both, NULL, 2);
	pthread_mutex_lock(&a);
	pthread_create(&t, NULL, other, NULL);
	pthread_barrier_wait(&both);
	puts("ready");
	lock_b();
}

static void spin(void)
{
	puts("ready");
	for (;;)
		spins++;
}

static void read_fifo(const char *path)
{
	char byte;
	int fd = open(path, O_RDWR); // as nobody writes, open for reading alone would wait
	puts("ready");
	read(fd, &byte, 1);
}

static void *worker(void *x)
{
	puts("ready");
	for (;;)
		pause();
	return x;
}

static void leave(void)
{
	pthread_t t;
	pthread_create(&t, NULL, worker, NULL);
	pthread_exit(NULL); // the main thread becomes a zombie
}

static void wait_in_kernel(void)
{
	puts("ready");
	if (vfork() == 0) // the parent waits in the kernel, in state D, until the child ends
		for (;;)
			pause();
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "deadlock"))
		deadlock();
	else if (!strcmp(argv[1], "spin"))
		spin();
	else if (!strcmp(argv[1], "fifo"))
		read_fifo(argv[2]);
	else if (!strcmp(argv[1], "leave"))
		leave();
	else if (!strcmp(argv[1], "kernel"))
		wait_in_kernel();
	return argc;
}
