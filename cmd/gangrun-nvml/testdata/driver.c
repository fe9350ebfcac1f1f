// A driver's library of two GPUs, of which the second is lost; with BOTH it is not. The
// file that $PROCESSES names, where it is set, has a line "GPU PID" for each process that
// computes on a GPU. With SPARSE it has
// only what no library is without; with HANGS it does not return from waiting for
// events. It tells of COUNT GPUs, its count ends with COUNTED and the handle of a
// GPU with HANDLE; with CRASHES it dies when it begins. The layouts are those of NVIDIA's nvml.h.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, DENIED = 4, TOO_SMALL = 7, TIMEOUT = 10, LOST = 15 };

typedef struct { int index; } gpu;
static gpu gpus[2] = {{0}, {1}};

#ifndef COUNT
#define COUNT 2
#endif
#ifndef COUNTED
#define COUNTED OK
#endif
#ifndef HANDLE
#define HANDLE OK
#endif

int nvmlInit_v2(void) {
#ifdef CRASHES
	*(volatile int *)8 = 1;
#endif
	return OK;
}
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == INVALID ? "Invalid Argument" : code == DENIED ? "Insufficient Permissions" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = COUNT; return COUNTED; }
int nvmlDeviceGetCount(unsigned *n) { return nvmlDeviceGetCount_v2(n); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu **g) { *g = &gpus[i]; return HANDLE; }
int nvmlDeviceGetHandleByIndex(unsigned i, gpu **g) { return nvmlDeviceGetHandleByIndex_v2(i, g); }
int nvmlDeviceGetUUID(gpu *g, char *text, unsigned n) { snprintf(text, n, "GPU-%d", g->index); return OK; } // known by heart

#ifndef SPARSE
#ifdef BOTH
#define ALIVE(g)
#else
#define ALIVE(g) if ((g)->index == 1) return LOST
#endif

typedef struct { char legacy[16]; uint32_t domain, bus, device, id, subsystem; char text[32]; } pci;
typedef struct { uint64_t total, free, used; } memory;
typedef struct { uint32_t version; uint64_t total, reserved, free, used; } memory2;
typedef struct { uint32_t pid; uint64_t memory; uint32_t gi, ci; } process;
typedef struct { uint32_t field, scope; int64_t time, latency; uint32_t type, code; uint64_t value; } field;
typedef struct { gpu *g; uint64_t type, data; uint32_t gi, ci; } event;

int nvmlSystemGetDriverVersion(char *text, unsigned n) { snprintf(text, n, "570.1"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *n) { *n = 12080; return OK; }
int nvmlDeviceGetName(gpu *g, char *text, unsigned n) { ALIVE(g); snprintf(text, n, "NVIDIA H100"); return OK; }
int nvmlDeviceGetPciInfo_v3(gpu *g, pci *p) { ALIVE(g); memset(p, 0, sizeof *p); strcpy(p->text, "00000000:3B:00.0"); return OK; }
int nvmlDeviceGetPciInfo(gpu *g, pci *p) { return nvmlDeviceGetPciInfo_v3(g, p); }
int nvmlDeviceGetMemoryInfo(gpu *g, memory *m) { ALIVE(g); *m = (memory){80, 70, 10}; return OK; }
int nvmlDeviceGetMemoryInfo_v2(gpu *g, memory2 *m) {
	ALIVE(g);
	if (m->version != (sizeof *m | 2u << 24)) return 25;
	m->total = 80, m->reserved = 1, m->free = 70, m->used = 9;
	return OK;
}
int nvmlDeviceGetCpuAffinity(gpu *g, unsigned words, unsigned long *mask) {
	ALIVE(g);
	memset(mask, 0, words * sizeof *mask);
	mask[0] = 0xf, mask[words - 1] = 1;
	return words == 128 ? OK : INVALID;
}
int nvmlDeviceGetNvLinkState(gpu *g, unsigned n, unsigned *on) { ALIVE(g); *on = n != 2; return n < 18 ? OK : INVALID; }
int nvmlDeviceGetNvLinkRemoteDeviceType(gpu *g, unsigned n, unsigned *type) { ALIVE(g); *type = 2; return OK; }
int nvmlDeviceGetNvLinkErrorCounter(gpu *g, unsigned n, unsigned counter, unsigned long long *errors) { ALIVE(g); *errors = counter + 1; return n < 18 && counter < 4 ? OK : INVALID; }
int nvmlDeviceGetPowerUsage(gpu *g, unsigned *mw) { ALIVE(g); *mw = 698900 + g->index; return OK; }
int nvmlDeviceGetClockInfo(gpu *g, unsigned type, unsigned *mhz) { ALIVE(g); *mhz = 1980; return type == 1 ? OK : INVALID; }
int nvmlDeviceGetTemperature(gpu *g, unsigned sensor, unsigned *degrees) { ALIVE(g); *degrees = 61; return sensor == 0 ? OK : INVALID; }
int nvmlDeviceGetCurrPcieLinkGeneration(gpu *g, unsigned *n) { ALIVE(g); *n = 4; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(gpu *g, unsigned *n) { ALIVE(g); *n = 8; return OK; }
int nvmlDeviceGetMaxPcieLinkGeneration(gpu *g, unsigned *n) { ALIVE(g); *n = 5; return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(gpu *g, unsigned *n) { ALIVE(g); *n = 16; return OK; }
static int listed(FILE *f, int index, unsigned *n, process *all) {
	unsigned room = *n;
	int at;
	for (unsigned pid, i = *n = 0; fscanf(f, "%d %u", &at, &pid) == 2;) {
		if (at != index) continue;
		*n = ++i;
		if (i <= room) all[i - 1] = (process){pid, 1, -1, -1};
	}
	fclose(f);
	return *n > room ? TOO_SMALL : OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *g, unsigned *n, process *all) {
	ALIVE(g);
	const char *path = getenv("PROCESSES");
	FILE *f = path ? fopen(path, "r") : NULL;
	if (f) return listed(f, g->index, n, all);
	unsigned room = *n;
	*n = 3;
	if (room < 3) return TOO_SMALL;
	for (unsigned i = 0; i < 3; i++) all[i] = (process){getpid(), 5, i, -1};
	all[2] = (process){getpid(), -1, -1, -1};
	return OK;
}
int nvmlDeviceGetComputeRunningProcesses(gpu *g, unsigned *n, process *all) { return nvmlDeviceGetComputeRunningProcesses_v3(g, n, all); }
int nvmlDeviceGetFieldValues(gpu *g, int n, field *f) {
	ALIVE(g);
	for (int i = 0; i < n; i++) f[i].code = f[i].field == 230 ? OK : INVALID, f[i].type = 1, f[i].value = 3;
	return OK;
}
int nvmlDeviceGetRetiredPages(gpu *g, unsigned cause, unsigned *n, uint64_t *all) {
	ALIVE(g);
	unsigned room = *n;
	*n = cause == 0 ? 2 : 0;
	return room < *n ? TOO_SMALL : OK;
}
int nvmlDeviceGetRetiredPagesPendingStatus(gpu *g, unsigned *pending) { ALIVE(g); *pending = 1; return OK; }
int nvmlDeviceGetTopologyCommonAncestor(gpu *a, gpu *b, unsigned *level) { ALIVE(a); ALIVE(b); *level = 10; return OK; }

int nvmlEventSetCreate(int **set) { static int s; *set = &s; return OK; }
int nvmlDeviceGetSupportedEventTypes(gpu *g, uint64_t *types) { *types = 0x1b; return OK; }
int nvmlDeviceRegisterEvents(gpu *g, uint64_t types, int *set) { ALIVE(g); return types == 0xb ? OK : INVALID; }
int nvmlEventSetWait_v2(int *set, event *e, unsigned ms) {
#ifdef HANGS
	for (;;) pause();
#endif
	if (*set) { usleep(ms * 1000); return TIMEOUT; }
	*set = 1;
	*e = (event){&gpus[0], 8, 63, -1, -1};
	return OK;
}
int nvmlEventSetWait(int *set, event *e, unsigned ms) { return nvmlEventSetWait_v2(set, e, ms); }
int nvmlEventSetFree(int *set) { return OK; }
#endif
