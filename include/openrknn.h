/* What OpenRKNN adds to the RKNN C API. Programs that must also run with another runtime should not need it. */
#ifndef OPENRKNN_H
#define OPENRKNN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call of this thread failed, in words; an empty text when it did not. Valid until the thread's next call. */
const char* orknn_last_error(void);

/* Version of the library, "1.2.3". */
const char* orknn_version(void);

/* Threads that contexts made from now on use to compute, the calling one included. 0 = one per core (the default;
 * the variable ORKNN_THREADS changes it). Returns 0, or RKNN_ERR_PARAM_INVALID outside 0 to 1024. */
int orknn_set_thread_count(int threads);

#ifdef __cplusplus
}
#endif

#endif
