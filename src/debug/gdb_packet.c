#include "debug/gdb_packet.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INTERRUPT 3

void gdb_link_open(struct gdb_link *link, int fd)
{
	*link = (struct gdb_link){.fd = fd, .acknowledges = true};
}

void gdb_link_close(struct gdb_link *link)
{
	close(link->fd);
	buffer_deinit(&link->output);
}

static bool send_all(struct gdb_link *link, const uint8_t *bytes, size_t size)
{
	while (size && !link->closed) {
		ssize_t n = send(link->fd, bytes, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			link->closed = true;
		else
			bytes += n;
		size -= n > 0 ? (size_t)n : 0;
	}
	return !link->closed;
}

/* ---- from gdb ---- */

static bool fill(struct gdb_link *link, bool wait)
{
	ssize_t n;

	if (link->input_start == link->input_end)
		link->input_start = link->input_end = 0;
	if (link->input_end == sizeof link->input || link->closed)
		return false;
	do
		n = recv(link->fd, link->input + link->input_end, sizeof link->input - link->input_end,
		        wait ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		link->input_end += (size_t)n;
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
		link->closed = true;
	return false;
}

/* -1: gdb is gone. */
static int next_byte(struct gdb_link *link)
{
	if (link->input_start == link->input_end && !fill(link, true))
		return -1;
	return link->input[link->input_start++];
}

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void acknowledge(struct gdb_link *link, char c)
{
	if (link->acknowledges && send(link->fd, &c, 1, MSG_NOSIGNAL) != 1)
		link->closed = true;
}

/* Behind the $. 1: it is whole; 0: it is not, and gdb has been told; -1: gdb is gone. */
static int receive_body(struct gdb_link *link, char *text, size_t *size)
{
	unsigned sum = 0;
	bool fits = true, escaped = false;
	int c;

	*size = 0;
	while ((c = next_byte(link)) >= 0 && c != '#') {
		if (c == '$') { /* the one before was cut off */
			sum = 0;
			*size = 0;
			fits = true;
			escaped = false;
			continue;
		}
		sum += (unsigned)c;
		if (c == '}' && !escaped) {
			escaped = true;
			continue;
		}
		fits = fits && *size + 1 < GDB_PACKET_MAXIMUM;
		if (fits)
			text[(*size)++] = (char)(escaped ? c ^ 0x20 : c);
		escaped = false;
	}
	int high = next_byte(link), low = next_byte(link);
	if (c < 0 || high < 0 || low < 0)
		return -1;
	bool right = fits && digit(high) >= 0 && digit(low) >= 0 &&
	             (unsigned)(digit(high) << 4 | digit(low)) == (sum & 0xff);
	/* One that does not fit would come again and again. */
	acknowledge(link, right || !fits ? '+' : '-');
	text[*size] = 0;
	if (!fits)
		gdb_link_send(link, "E.packet too long", strlen("E.packet too long"));
	return right;
}

bool gdb_link_receive(struct gdb_link *link, char text[GDB_PACKET_MAXIMUM], size_t *size)
{
	for (;;) {
		int c = link->closed ? -1 : next_byte(link);
		if (c < 0)
			return false;
		if (c == INTERRUPT) {
			link->interrupted = true;
			*size = 0;
			text[0] = 0;
			return true;
		}
		if (c == '-' && link->acknowledges && link->output.size)
			send_all(link, link->output.bytes, link->output.size);
		if (c != '$')
			continue; /* acknowledgements, and noise */
		int whole = receive_body(link, text, size);
		if (whole)
			return whole > 0;
	}
}

bool gdb_link_wants_stop(struct gdb_link *link)
{
	while (fill(link, false))
		;
	while (link->input_start < link->input_end && link->input[link->input_start] == '+')
		link->input_start++;
	if (link->input_start < link->input_end && link->input[link->input_start] == INTERRUPT) {
		link->input_start++;
		return true;
	}
	return link->closed;
}

/* ---- to gdb ---- */

static bool is_special(char c)
{
	return c == '$' || c == '#' || c == '}' || c == '*';
}

void gdb_link_send(struct gdb_link *link, const char *text, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	struct buffer *out = &link->output;
	unsigned sum = 0;

	out->size = 0;
	buffer_bytes(out, "$", 1);
	for (size_t i = 0; i < size; i++) {
		char pair[2] = {'}', (char)(text[i] ^ 0x20)};
		bool special = is_special(text[i]);
		buffer_bytes(out, special ? pair : &text[i], special ? 2 : 1);
	}
	for (size_t i = 1; i < out->size; i++)
		sum += out->bytes[i];
	char end[3] = {'#', digits[sum >> 4 & 15], digits[sum & 15]};
	buffer_bytes(out, end, 3);
	if (!out->failed)
		send_all(link, out->bytes, out->size);
}
