/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIFTD_TESTS_C_CONSUMER_H
#define DRIFTD_TESTS_C_CONSUMER_H

#include "driftd/consumer.h"

#ifdef __cplusplus
extern "C" {
#endif

driftd_consumer* c_consumer_start(const char* nats, const char* backends, char* error, size_t size);
/* Increments `orders` in Redis and returns its value, or -1. */
long long c_consumer_count(driftd_consumer* consumer);

#ifdef __cplusplus
}
#endif

#endif
