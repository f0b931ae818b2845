/* Load generator: N connections, each with one request in flight, on one thread with epoll.
 *
 *   load PORT CONNECTIONS SECONDS FILE FIRST ONCE CAPTURES [MARKER ...]
 *
 * FILE has the scripts (bench/load.py writes it): "SCRIPT LINES EXPECTED HEAD BODY\n", the number of the script, the
 * number of lines of the answer (0: an HTTP answer with a content-length) and the lengths of the three texts that follow:
 * how the answer must begin, the head and the body of the request. Steps with the same number are one script.
 * In a request, byte 1 stands for a number of 8 digits that every run of a script draws anew, beginning with FIRST, bytes 2
 * and 3 for the text that followed the first and the second MARKER in an earlier answer of this run.
 *
 * A connection runs one script after the other, taken in turn, until the time is over; with ONCE=1 each script runs once.
 * CAPTURES is a file for the number and first captured text of every finished script, or "-".
 * An answer that does not begin as expected ends the program with status 1. The result is one JSON object on stdout.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, REQUEST = 1 << 18, CAPTURE = 128, MARKERS = 2, STEPS = 8 };

struct step { int lines, expected_length, head_length, body_length; char *expected, *head, *body; };
struct script { int steps; struct step step[STEPS]; };
struct caller {
    int socket, step, used;
    long number;
    struct script *script;
    double sent;
    char captured[MARKERS][CAPTURE];
    char *buffer;
};
struct latencies { size_t used, room; float *seconds; };

static struct script *scripts;
static size_t script_count, next_script;
static long next_number, finished, answered;
static double until;
static int once, marker_count;
static char **markers;
static FILE *captures;
static struct latencies latencies[STEPS], all;

static void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static char *read_text(FILE *file, int length) {
    char *text = malloc(length + 1);
    if (!text || fread(text, 1, length, file) != (size_t)length) fail("the file of requests is cut off");
    text[length] = 0;
    return text;
}

static void read_scripts(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("cannot read %s", path);
    size_t number;
    struct step step;
    while (fscanf(file, "%zu %d %d %d %d", &number, &step.lines, &step.expected_length, &step.head_length,
                  &step.body_length) == 5) {
        fgetc(file);
        step.expected = read_text(file, step.expected_length);
        step.head = read_text(file, step.head_length);
        step.body = read_text(file, step.body_length);
        if (number == script_count) {
            scripts = realloc(scripts, ++script_count * sizeof *scripts);
            scripts[number].steps = 0;
        }
        if (number + 1 != script_count || scripts[number].steps == STEPS) fail("script %zu is out of order", number);
        scripts[number].step[scripts[number].steps++] = step;
    }
    fclose(file);
}

static void add_latency(struct latencies *list, double seconds) {
    if (list->used == list->room) {
        list->room = list->room ? 2 * list->room : 1 << 14;
        list->seconds = realloc(list->seconds, list->room * sizeof *list->seconds);
        if (!list->seconds) fail("out of memory");
    }
    list->seconds[list->used++] = seconds;
}

/* The template with its placeholders replaced; returns its length. */
static int fill(char *out, const char *template, int length, struct caller *caller) {
    char *start = out;
    for (const char *byte = template; byte < template + length; byte++) {
        if (out - start > REQUEST - CAPTURE) fail("a request is too long");
        if (*byte == 1) out += sprintf(out, "%08ld", caller->number);
        else if (*byte == 2 || *byte == 3) out = stpcpy(out, caller->captured[*byte - 2]);
        else *out++ = *byte;
    }
    return out - start;
}

static void send_step(struct caller *caller) {
    static char request[2 * REQUEST], body[REQUEST];
    struct step *step = &caller->script->step[caller->step];
    int length = fill(request, step->head, step->head_length, caller);
    if (step->lines == 0) {
        int body_length = fill(body, step->body, step->body_length, caller);
        length += sprintf(request + length, "content-length: %d\r\n\r\n", body_length);
        memcpy(request + length, body, body_length);
        length += body_length;
    }
    caller->sent = now();
    for (int done = 0, more; done < length; done += more)
        if ((more = send(caller->socket, request + done, length - done, MSG_NOSIGNAL)) <= 0) fail("cannot send");
}

/* Begin the next script; 0 if there is none. Every connection begins one, however late it is. */
static int begin(struct caller *caller) {
    if ((caller->script && now() >= until) || (once && next_script >= script_count)) return 0;
    caller->script = &scripts[next_script++ % script_count];
    caller->number = next_number++;
    caller->step = 0;
    caller->captured[0][0] = caller->captured[1][0] = 0;
    send_step(caller);
    return 1;
}

/* Length of the answer in the buffer, or 0 while it is not complete. */
static int answer_length(struct caller *caller, int lines) {
    char *end = caller->buffer;
    if (lines > 0) {
        for (; lines > 0; lines--)
            if (!(end = strstr(end, "\r\n"))) return 0;
            else end += 2;
        return end - caller->buffer;
    }
    if (!(end = strstr(caller->buffer, "\r\n\r\n"))) return 0;
    *end = 0;
    char *field = strcasestr(caller->buffer, "\r\ncontent-length:");
    int length = field ? atoi(field + 17) : 0;
    *end = '\r';
    length += end + 4 - caller->buffer;
    return caller->used >= length ? length : 0;
}

static void capture(struct caller *caller) {
    for (int index = 0; index < marker_count; index++) {
        char *found = strstr(caller->buffer, markers[index]);
        if (!found) continue;
        found += strlen(markers[index]);
        int length = strcspn(found, "\" \r\n");
        if (length >= CAPTURE) fail("the text after %s is too long", markers[index]);
        memcpy(caller->captured[index], found, length);
        caller->captured[index][length] = 0;
    }
}

/* Read what has arrived; 0 when this connection has nothing left to do. */
static int receive(struct caller *caller) {
    struct step *step = &caller->script->step[caller->step];
    int more = recv(caller->socket, caller->buffer + caller->used, BUFFER - 1 - caller->used, 0);
    if (more <= 0) fail("the server closed a connection");
    caller->used += more;
    caller->buffer[caller->used] = 0;
    int length = answer_length(caller, step->lines);
    if (length == 0) return 1;
    if (strncmp(caller->buffer, step->expected, step->expected_length)) fail("unexpected answer: %s", caller->buffer);
    if (caller->used != length) fail("more than one answer: %s", caller->buffer);
    add_latency(&latencies[caller->step], now() - caller->sent);
    answered++;
    capture(caller);
    caller->used = 0;
    if (++caller->step < caller->script->steps) {
        send_step(caller);
        return 1;
    }
    finished++;
    if (captures) fprintf(captures, "%08ld %s\n", caller->number, caller->captured[0]);
    return begin(caller);
}

static int compare(const void *one, const void *other) {
    float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

static void print_latencies(const char *name, struct latencies *list) {
    if (list->used == 0) fail("no request was answered");
    qsort(list->seconds, list->used, sizeof *list->seconds, compare);
    printf("%s{\"count\":%zu,\"p50\":%.9f,\"p99\":%.9f}", name, list->used, list->seconds[list->used / 2],
           list->seconds[(size_t)(list->used * 0.99)]);
}

int main(int count, char **arguments) {
    if (count < 8 || count > 8 + MARKERS) fail("usage: load PORT CONNECTIONS SECONDS FILE FIRST ONCE CAPTURES [MARKER ...]");
    int connections = atoi(arguments[2]), working = 0;
    read_scripts(arguments[4]);
    if (script_count == 0) fail("no requests");
    next_number = atol(arguments[5]);
    once = atoi(arguments[6]);
    if (strcmp(arguments[7], "-")) captures = fopen(arguments[7], "w");
    markers = arguments + 8;
    marker_count = count - 8;

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int events = epoll_create1(0), yes = 1;
    struct caller *callers = calloc(connections, sizeof *callers);
    for (int index = 0; index < connections; index++) {
        struct caller *caller = &callers[index];
        caller->socket = socket(AF_INET, SOCK_STREAM, 0);
        caller->buffer = malloc(BUFFER);
        if (!caller->buffer || connect(caller->socket, (struct sockaddr *)&address, sizeof address)) fail("cannot connect");
        setsockopt(caller->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = caller};
        epoll_ctl(events, EPOLL_CTL_ADD, caller->socket, &event);
    }
    double started = now();
    until = started + atof(arguments[3]);
    for (int index = 0; index < connections; index++) working += begin(&callers[index]);
    while (working > 0) {
        struct epoll_event ready[64];
        int found = epoll_wait(events, ready, 64, 60000);
        if (found == 0) fail("no answer for a minute");
        for (int index = 0; index < found; index++) working -= !receive(ready[index].data.ptr);
    }
    double seconds = now() - started;
    if (captures) fclose(captures);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    for (int step = 0; step < STEPS; step++)
        for (size_t index = 0; index < latencies[step].used; index++) add_latency(&all, latencies[step].seconds[index]);
    printf("{\"answered\":%ld,\"finished\":%ld,\"seconds\":%.6f,\"cpu\":%.6f", answered, finished, seconds, cpu);
    print_latencies(",\"all\":", &all);
    for (int step = 0; step < STEPS && latencies[step].used; step++)
        print_latencies(step ? "," : ",\"steps\":[", &latencies[step]);
    puts("]}");
    return 0;
}
