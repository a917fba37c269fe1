/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

/* Hidden: for the build. */
int command_manual(char **words);
int command_completion(char **words);

#endif
