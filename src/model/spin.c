/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/spin.h"

spin_wait_fn spin_wait;
