/* What OpenRKNN adds to the RKNN C API. Programs that must also run with another runtime should not need it. */
#ifndef OPENRKNN_H
#define OPENRKNN_H

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call of this thread failed, in words; an empty text when it did not. Valid until the thread's next call. */
const char* orknn_last_error(void);

/* Why the last call with this context that failed did so, on whichever thread, runs in the background included; an empty text
 * when none failed, or for a context that is not valid. Valid until the next call with the context. */
const char* orknn_context_error(rknn_context context);

/* Version of the library, "1.2.3". */
const char* orknn_version(void);

/* Threads that contexts made from now on use to compute, the calling one included. 0 = the threads of the simulated cores: all of
 * the machine's while one run is under way, divided by cores while there are more (the default; the variable ORKNN_THREADS
 * changes their number). Returns 0, or RKNN_ERR_PARAM_INVALID outside 0 to 1024. */
int orknn_set_thread_count(int threads);

/* The chip that contexts made from now on simulate, by name: models made for another one are refused (-13), and so is what the
 * chip does not offer. NULL or "" = the chip of each model, and nothing is refused (the default; the variable OPENRKNN_PLATFORM
 * changes it). Returns 0, or RKNN_ERR_PARAM_INVALID for an unknown name. */
int orknn_set_platform(const char* name);

/* Records calls, runs and layers from now on, and writes them to the file at orknn_trace_stop in Chrome's trace format
 * (chrome://tracing, ui.perfetto.dev): one row per calling thread, one per simulated core. Return 0; RKNN_ERR_PARAM_INVALID when
 * `path` is NULL, when a trace is under way at the start, or none at the stop; RKNN_ERR_FAIL when the file cannot be written. */
int orknn_trace_start(const char* path);
int orknn_trace_stop(void);

#ifdef __cplusplus
}
#endif

#endif
