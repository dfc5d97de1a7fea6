// C11 threads by way of POSIX threads, for the thread sanitizer alone.
//
// The sanitizer knows pthread_create and its kin, not thrd_create, by which Debian 12's librdkafka starts its threads
// and takes its locks: it crashes at the first. A program that exports these functions has the library use them
// instead. In glibc the C11 types are the POSIX ones under another name.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>
#include <memory>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

namespace {

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* data) {
  const std::unique_ptr<Start> start(static_cast<Start*>(data));
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(start->function(start->argument)));
}

int result_of(int error) {
  switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
  }
}

pthread_mutex_t* posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}
pthread_cond_t* posix(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto start = std::make_unique<Start>(Start{function, argument});
  const int error = pthread_create(thread, nullptr, run, start.get());
  if (error == 0) start.release();
  return result_of(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (error == 0 && result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return result_of(error);
}

int thrd_detach(thrd_t thread) {
  return result_of(pthread_detach(thread));
}

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result_of(error);
}

int mtx_lock(mtx_t* mutex) {
  return result_of(pthread_mutex_lock(posix(mutex)));
}
int mtx_trylock(mtx_t* mutex) {
  return result_of(pthread_mutex_trylock(posix(mutex)));
}
int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  return result_of(pthread_mutex_timedlock(posix(mutex), until));
}
int mtx_unlock(mtx_t* mutex) {
  return result_of(pthread_mutex_unlock(posix(mutex)));
}
void mtx_destroy(mtx_t* mutex) {
  pthread_mutex_destroy(posix(mutex));
}

int cnd_init(cnd_t* condition) {
  return result_of(pthread_cond_init(posix(condition), nullptr));
}
int cnd_signal(cnd_t* condition) {
  return result_of(pthread_cond_signal(posix(condition)));
}
int cnd_broadcast(cnd_t* condition) {
  return result_of(pthread_cond_broadcast(posix(condition)));
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return result_of(pthread_cond_wait(posix(condition), posix(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return result_of(pthread_cond_timedwait(posix(condition), posix(mutex), until));
}
void cnd_destroy(cnd_t* condition) {
  pthread_cond_destroy(posix(condition));
}

}  // extern "C"
