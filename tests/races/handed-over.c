/*
 * A value is handed over by calls that carry no data of it: a message, a semaphore of System V, a signal that is waited
 * for, the end of a stream. Each time it is changed once more behind that.
 *
 * race: values
 */
#include "race.h"
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>

static volatile int values[4];
static int messages, semaphores, streams[2];
static pthread_t reader;
static sem_t known;

static NOINLINE void *give(void *unused)
{
	struct {
		long kind;
		char text[1];
	} message = {1, "x"};
	struct sembuf up = {0, 1, 0};

	sem_wait(&known);
	values[0] = 5;
	msgsnd(messages, &message, 1, 0);
	IF_RACING(values[0] = 6;)
	values[1] = 5;
	semop(semaphores, &up, 1);
	IF_RACING(values[1] = 6;)
	values[2] = 5;
	pthread_kill(reader, SIGUSR1);
	IF_RACING(values[2] = 6;)
	values[3] = 5;
	shutdown(streams[0], SHUT_WR);
	IF_RACING(values[3] = 6;)
	return unused;
}

static NOINLINE void *take(void *unused)
{
	struct {
		long kind;
		char text[1];
	} message;
	struct sembuf down = {0, -1, 0};
	sigset_t set;
	int signal, sum;

	reader = pthread_self();
	sem_post(&known);
	msgrcv(messages, &message, 1, 0, 0);
	sum = values[0];
	semop(semaphores, &down, 1);
	sum += values[1];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &signal);
	sum += values[2];
	while (read(streams[1], message.text, 1) > 0)
		;
	sum += values[3];
	return sum == 99 ? NULL : unused;
}

int main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sem_init(&known, 0, 0);
	messages = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	if (messages < 0 || semaphores < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, streams))
		return 1;
	run_two(take, give);
	msgctl(messages, IPC_RMID, NULL);
	semctl(semaphores, 0, IPC_RMID);
	puts("done");
	return 0;
}
