// SPDX-License-Identifier: Apache-2.0
//
// Programs on disk: one file each, `<key>.ttp`, in a folder that any number of processes share.
//
// A file is a header (magic, format version, key, payload size, checksum) and the plugin's serialised executable. Files appear by
// rename, so a reader sees all of one or none; one whose header or checksum is wrong is ignored and written anew. When the
// folder grows past its limit the files not used for longest go. A folder that cannot be written gives one warning.
// Thread rule: thread-safe.
#ifndef TT_CACHE_DISK_H
#define TT_CACHE_DISK_H

#include "base/hash.h"
#include "tt/status.h"

// The folder, made if need be; NULL if the disk cache is off. Borrowed.
const char* tt_disk_folder(void);
// True and a malloc'ed payload if a sound file for `key` is there.
bool tt_disk_read(tt_digest key, void** out_bytes, size_t* out_size);
void tt_disk_write(tt_digest key, const void* bytes, size_t size);
// As above with the folder given, for tests and tools.
bool tt_disk_read_at(const char* folder, tt_digest key, void** out_bytes, size_t* out_size);
TT_NODISCARD tt_status tt_disk_write_at(const char* folder, tt_digest key, const void* bytes, size_t size);
TT_NODISCARD tt_status tt_disk_usage_at(const char* folder, int64_t* out_files, int64_t* out_bytes);
// Removes the files not used for longest until at most `limit` bytes are left (0: all).
TT_NODISCARD tt_status tt_disk_trim_at(const char* folder, int64_t limit);

#endif  // TT_CACHE_DISK_H
