/* The standard interface to interleaved files in C11. It is pif/client/client.h with handles; what each operation means
 * is said there. Dibble 1990, section 3.2.
 *
 * Results: functions that return int64_t or int give a count or 0 when they succeed, and a negative error code
 * (-PIF_E_...) when they fail; functions that return a pointer give NULL. pif_error() and pif_error_text() say what
 * went wrong last on that connection. NULL where something is needed is -PIF_E_INVALID; memory of 0 bytes may be NULL.
 * Nothing more is known of a NULL connection or file: pif_tell() and pif_record_length() give 0. No C++ exception
 * gets out.
 *
 * Thread-safety: a connection and all its files belong to one thread at a time. Different connections are independent.
 * A second thread, and a child of fork() on its parent's connections, get -PIF_E_INVALID. Files keep their connection
 * alive: pif_disconnect while files are open is allowed. */
#ifndef PIF_CLIENT_PIF_H
#define PIF_CLIENT_PIF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of pif/base/result.h and of the protocol. */
enum pif_code {
  PIF_OK = 0,
  PIF_E_INVALID = 1,
  PIF_E_NOT_FOUND = 2,
  PIF_E_EXISTS = 3,
  PIF_E_NOT_DIRECTORY = 4,
  PIF_E_IS_DIRECTORY = 5,
  PIF_E_NOT_EMPTY = 6,
  PIF_E_PERMISSION = 7,
  PIF_E_BAD_CAPABILITY = 8,
  PIF_E_STALE_FILE = 9,
  PIF_E_BUSY = 10,
  PIF_E_NO_SPACE = 11,
  PIF_E_READ_ONLY = 12,
  PIF_E_IO = 13,
  PIF_E_CORRUPT = 14,
  PIF_E_TIMEOUT = 15,
  PIF_E_UNAVAILABLE = 16,
  PIF_E_TOO_LARGE = 17,
  PIF_E_VERSION = 18,
  PIF_E_UNSUPPORTED = 19,
  PIF_E_CANCELLED = 20,
  PIF_E_END_OF_FILE = 21,
  PIF_E_RETRY = 22,
  PIF_E_INTERNAL = 23, /* a bug of the library's, described by the text. If it was an assertion that broke, the
                          connection and its files do nothing more: close them, and connect anew */
  PIF_E_STALE_NODE = 24,
  PIF_E_STALE_SERVER = 25,
  PIF_E_STALE_DATA = 26,
  PIF_E_OLD_VIEW = 27,
  PIF_E_OUTCOME_UNKNOWN = 28
};

typedef struct pif_connection pif_connection;
typedef struct pif_file pif_file;
typedef struct pif_pattern pif_pattern;

enum pif_record_kind { PIF_FIXED = 1, PIF_VARIABLE = 2, PIF_DELIMITED = 3 };
enum pif_mode { PIF_READ = 0, PIF_WRITE = 1 /* and read */, PIF_HOLD = 2 /* read, and nobody may write meanwhile */ };
enum pif_data_path { PIF_DATA_AUTO = 0, PIF_DATA_DESCRIPTORS = 1, PIF_DATA_MESSAGES = 2 };

/* All zero: the defaults. */
typedef struct pif_options {
  const char* route; /* NULL, "auto", "unix", "ipc" or "tcp" */
  enum pif_data_path data_path;
  uint32_t timeout_ms; /* of everything that talks to a daemon; 0: 30 seconds */
  uint32_t threads;    /* of bulk transfers; 0: the cores that the process may use, 2 to 16 */
} pif_options;

#define PIF_NO_BEVIES UINT32_MAX

/* A named attribute of a file: text, which the file system keeps and does not understand. */
typedef struct pif_attribute {
  const char* name;
  const char* value;
} pif_attribute;

/* All zero: 64 KiB records, LFSs and bevies as the folder has it, else all LFSs that are up and bevies as the file
 * system has it, mode 0644. */
typedef struct pif_create_options {
  enum pif_record_kind kind; /* 0: PIF_FIXED */
  uint32_t record_length;    /* bytes, PIF_FIXED; 0: 65536 */
  uint8_t delimiter;         /* PIF_DELIMITED */
  uint8_t exclusive;         /* not 0: fail instead of replacing an existing file at commit */
  uint8_t placed;            /* not 0: its bytes are in forks */
  uint32_t width;            /* LFSs; 0: node_count, else that of the folder, else all that are up */
  const uint32_t* nodes;     /* node ids in order; NULL: those of the folder, else the server chooses */
  size_t node_count;
  uint32_t bevy; /* size of all bevies; 0: that of the folder, else of the file system; PIF_NO_BEVIES */
  uint32_t mode; /* permission bits; 0: 0644 */
  const pif_attribute* attributes;
  size_t attribute_count;
} pif_create_options;

/* Where a record is. */
typedef struct pif_place {
  uint32_t lfs;  /* of the file: 0 to width - 1 */
  uint32_t node; /* id of that LFS */
  uint64_t row;  /* the record's number there */
} pif_place;

/* An LFS, as the server knows it. */
typedef struct pif_node_info {
  uint32_t id;
  const char* name;
  const char* state; /* "up", "suspect", "down", "draining", "stale" or "failing" */
  const char* root;  /* its folder there */
  uint64_t bytes_total, bytes_free, bytes_stored;
  uint64_t components; /* parts of files that it has */
  uint32_t silent_ms;  /* since it was heard */
  const char* host;    /* as pif.toml names it; "": there is only one */
} pif_node_info;

/* The file system, as the server knows it. The texts are valid until the connection's next pif_status(). */
typedef struct pif_status_info {
  const char* name;
  const char* refused; /* why the server serves nobody, and what to do; "": it serves */
  uint64_t files, folders;
  uint64_t pending;  /* files being created */
  uint64_t doomed;   /* files that are gone, and parts of which are still to be removed */
  uint64_t sessions; /* connections */
  uint32_t nodes, nodes_up;
} pif_status_info;

typedef struct pif_stat_info {
  uint64_t id;
  uint64_t records; /* a hint while somebody appends; pif_file_length asks */
  uint64_t bytes;
  int64_t modified_ns; /* since 1970 */
  uint32_t owner, group, mode;
  uint32_t record_length; /* bytes, PIF_FIXED */
  uint32_t width;
  enum pif_record_kind kind;
  uint8_t delimiter;
  uint8_t is_folder;
  uint8_t is_placed; /* a file whose bytes are in forks */
} pif_stat_info;

/* What pif_set_attributes() changes. All zero: nothing. */
typedef struct pif_attribute_change {
  uint8_t sets_mode, sets_owner, sets_group, sets_modified; /* not 0: to what is below */
  uint32_t mode;                                            /* permission bits, up to 07777 */
  uint32_t owner, group;
  int64_t modified_ns; /* since 1970 */
} pif_attribute_change;

/* A whole small file in memory. */
typedef struct pif_small_file {
  const char* path;
  const void* bytes;
  size_t size;
} pif_small_file;

/* One of several reads at once. */
typedef struct pif_read_request {
  uint64_t first; /* record */
  uint64_t count; /* records */
  void* out;
  size_t out_bytes;
  uint64_t done; /* records read */
} pif_read_request;

/* The requests of one operation ("read", "stat", ...) that a connection has sent. */
typedef struct pif_operation_stats {
  const char* name;
  uint64_t count, errors;
  uint64_t bytes_received, bytes_sent; /* of records */
  uint64_t total_us, p50_us, p99_us, max_us;
} pif_operation_stats;

/* Asked for each operation; not 0 ends it. `stats` is valid during the call only. */
typedef int (*pif_stats_function)(void* user, const pif_operation_stats* stats);

/* Asked for each attribute, by name; not 0 ends the listing. Both texts are valid during the call only. */
typedef int (*pif_attribute_function)(void* user, const char* name, const char* value);

/* Asked for each LFS, by id; not 0 ends the listing. `node` is valid during the call only. */
typedef int (*pif_node_function)(void* user, const pif_node_info* node);

/* Asked for each file that was read, in the order asked, by its place there; not 0 ends the call. `bytes` are valid
 * during the call only. */
typedef int (*pif_bytes_function)(void* user, size_t index, const void* bytes, size_t size);

/* Asked while a call waits; not 0: the call is to end. */
typedef int (*pif_wait_function)(void* user);

/* Asked for each name; not 0 ends the listing. `name` and `info` are valid during the call only. */
typedef int (*pif_list_function)(void* user, const char* name, const pif_stat_info* info);

/* ---- connection ---------------------------------------------------------------------------------------------------
 */

/* `where`: folder of the file system; NULL: $PIF, pif.toml here or above, or the user's default. Never NULL unless
 * memory is out: ask pif_error() whether it is connected. */
pif_connection* pif_connect(const char* where, const pif_options* options);
/* Frees it; NULL is allowed. What its files are creating goes on until they are closed. */
void pif_disconnect(pif_connection* connection);
/* Code (PIF_OK: none) and text of the last call that failed on this connection or its files. The text is valid until
 * the next call on them. */
int pif_error(const pif_connection* connection);
const char* pif_error_text(const pif_connection* connection);
/* "not-found" for PIF_E_NOT_FOUND, "unknown" for a number that is no code; a literal, valid for ever. */
const char* pif_code_name(int code);
/* What this connection and its files have asked so far. What travels through passed descriptors is no request. Calls
 * `each`, on this thread, with `user`; 0 also if nothing was asked yet. */
int pif_stats(const pif_connection* connection, pif_stats_function each, void* user);

/* All LFSs of the file system, on this thread. */
int pif_list_nodes(pif_connection* connection, pif_node_function each, void* user);

/* wait_up: waits until so many LFSs are up, or most of the timeout has passed: fewer are no error. */
int pif_status(pif_connection* connection, uint32_t wait_up, pif_status_info* info);
/* Calls of this connection and its files ask `function` with `user` when they begin to wait, and then at least each
 * 100 ms, whether they are to end. They then end with -PIF_E_CANCELLED; what they had begun may be done. It runs on the
 * calling thread, and calls nothing of the connection. NULL: nothing is asked. */
int pif_on_wait(pif_connection* connection, pif_wait_function function, void* user);

/* ---- names ----------------------------------------------------------------------------------------------------------
 */

/* A folder, durable. parents, if not 0: missing folders above are made, too, and a folder that is there is no error.
 * mode: permission bits of all that are made. */
int pif_mkdir(pif_connection* connection, const char* path, int parents); /* mode 0755 */
int pif_mkdir_mode(pif_connection* connection, const char* path, int parents, uint32_t mode);
/* Of a file or folder, durable. The mode is its owner's to change; so is the group, to one that he is in; the owner is
 * root's and the file system's owner's to change. PIF_KEEP: stays as it is. */
#define PIF_KEEP UINT32_MAX
int pif_chmod(pif_connection* connection, const char* path, uint32_t mode);
int pif_chown(pif_connection* connection, const char* path, uint32_t owner, uint32_t group);
/* A file, or an empty folder; recursive, if not 0: with all that is in it. */
int pif_remove(pif_connection* connection, const char* path, int recursive);
/* In one step; what has the name `to` is replaced unless no_replace is not 0. */
int pif_rename(pif_connection* connection, const char* from, const char* to, int no_replace);
/* `info` is written only if it succeeds. */
int pif_stat(pif_connection* connection, const char* path, pif_stat_info* info);
/* All names of a folder in byte order, on this thread. Names that come and go meanwhile may be missed. */
int pif_list(pif_connection* connection, const char* path, pif_list_function each, void* user);

/* The named attributes of what has the path, on this thread. pif_set_attributes(): in one step, durable; the time
 * stays, though what was written before is closed or committed later. */
int pif_attributes_of(pif_connection* connection, const char* path, pif_attribute_function each, void* user);
int pif_set_attributes(pif_connection* connection, const char* path, const pif_attribute_change* change);

/* ---- many at once
 * ------------------------------------------------------------------------------------------------------- */

/* Requests are sent together: some hundreds at a time use the daemons best. One that fails takes no other with it.
 * How many succeeded; `codes`, if not NULL, gets 0 or a negative code for each, and if one failed, pif_error_text()
 * tells of the first. A negative code is of the whole call: then nothing is known of any.
 * pif_stat_many: infos[i] is written only if that one succeeds. pif_remove_many: files and empty folders.
 * pif_put_many: all files are created as `options` say, durable and visible one by one; -PIF_E_OLD_VIEW: write that one
 * again. pif_get_many: all bytes of files that the caller knows to be small, as pif_pread() gives them; what `each` was
 * not asked for, because it ended the call, has succeeded. */
int64_t pif_stat_many(pif_connection* connection, const char* const* paths, size_t count, pif_stat_info* infos,
                      int* codes);
int64_t pif_remove_many(pif_connection* connection, const char* const* paths, size_t count, int* codes);
int64_t pif_put_many(pif_connection* connection, const pif_small_file* files, size_t count,
                     const pif_create_options* options, int* codes);
int64_t pif_get_many(pif_connection* connection, const char* const* paths, size_t count, pif_bytes_function each,
                     void* user, int* codes);

/* ---- open and close
 * --------------------------------------------------------------------------------------------------- */

/* A file being created (options NULL: the defaults), or a committed one. The caller closes it, also after commit or
 * abort. NULL: pif_error() says why. */
pif_file* pif_create(pif_connection* connection, const char* path, const pif_create_options* options);
pif_file* pif_open(pif_connection* connection, const char* path, enum pif_mode mode);
/* A file being created becomes durable and visible. It must still be closed. */
int pif_commit(pif_file* file);
/* Room for the first `bytes` bytes of a file being created, of fixed records; its length stays. -PIF_E_NO_SPACE: the
 * disks have less. */
int pif_preallocate(pif_file* file, uint64_t bytes);
/* Fixed records: the file has this length then. What is cut off is gone; what is new is zero. Of a file being created
 * that several write each member says it, and none writes before all have. A committed one that is open for writing:
 * durable and visible when it returns. Shorter, it is a new version, for which at most 1 GiB is copied
 * (-PIF_E_UNSUPPORTED: more); `file` is that version then, its position is 0, and no operation may be under way. What
 * others append while it is cut may be lost. Longer, zeros are written. */
int pif_resize(pif_file* file, uint64_t bytes);
/* Removes what was written to a file being created. It must still be closed. */
int pif_abort(pif_file* file);
/* Frees `file` in any case; a file being created and not committed is aborted. */
int pif_close(pif_file* file);

/* ---- whole files
 * -------------------------------------------------------------------------------------------------------- */

/* A new file of all that is read from the descriptor `fd` of this process, up to its end; it is there, durable, when
 * this returns, or not at all. Out of one: all bytes of a file, to `fd`, which is neither cut off nor synced; after an
 * error any of them may have been written. Regular files are moved in large pieces by several threads. Bytes. */
int64_t pif_put(pif_connection* connection, int fd, const char* path, const pif_create_options* options);
int64_t pif_get(pif_connection* connection, const char* path, int fd);
/* The same with a file being created, which is not committed yet, or with an open file. */
int64_t pif_import(pif_file* file, int fd);
int64_t pif_export(pif_file* file, int fd);

/* ---- what a file is, as of its opening: nobody is asked
 * ----------------------------------------------------------------- */

/* Node ids of its LFSs, in order; sizes of its bevies. How many there are; as many as there is room for are written. */
int64_t pif_nodes(pif_file* file, uint32_t* nodes, size_t count);
int64_t pif_bevies(pif_file* file, uint32_t* sizes, size_t count);
/* Where a record is, or would be: it need not be there. */
int pif_locate(pif_file* file, uint64_t record, pif_place* place);
int pif_attributes(pif_file* file, pif_attribute_function each, void* user);

/* ---- records
 * ------------------------------------------------------------------------------------------------------------ */

/* The position, in records: where calls without a number of a record go on; they move it. Not past the end. */
uint64_t pif_tell(const pif_file* file);
int pif_seek(pif_file* file, uint64_t record);
/* The length as published now. The record length in bytes; 0 where records have no fixed one. */
int pif_file_length(pif_file* file, uint64_t* records, uint64_t* bytes); /* either may be NULL */
uint32_t pif_record_length(const pif_file* file);

/* Fixed records, packed: up to `count` from the position, or from `first`. Records read, 0 at the end of the file,
 * fewer than `count` only where the file ends; -PIF_E_INVALID if out_bytes is too little for them. pif_read_many: all
 * requests at once; `done` of each says how many. pif_write: whole records at the position, or at `first`: overwritten,
 * or appended at the end. */
int64_t pif_read(pif_file* file, void* out, size_t out_bytes, uint64_t count);
int64_t pif_read_at(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count);
int pif_read_many(pif_file* file, pif_read_request* requests, size_t count);
int pif_write(pif_file* file, const void* in, size_t bytes);
int pif_write_at(pif_file* file, uint64_t first, const void* in, size_t bytes);
/* Number of the first record; all are consecutive, durable and visible. */
int64_t pif_append(pif_file* file, const void* in, size_t bytes);

/* Fixed records: bytes that go on where the file ends; a short last record is filled up first. Where they begin. */
int64_t pif_append_bytes(pif_file* file, const void* in, size_t bytes);

/* Variable records: up to `count` from the position, packed into `out`, their lengths into `lengths`. Records read; 0
 * at the end; -PIF_E_TOO_LARGE if the next one is longer than out_bytes. */
int64_t pif_read_batch(pif_file* file, void* out, size_t out_bytes, uint32_t* lengths, uint64_t count);
/* `count` records, whose `lengths` add up to `bytes`, to the position, or behind all others: then the number of the
 * first is returned, and they are durable and visible. */
int pif_write_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count);
int64_t pif_append_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count);

/* Variable records by their numbers, in the order asked; a number may come twice. Packed into `out`, their lengths into
 * `lengths`. Records read: fewer than `count` if the next one does not fit; -PIF_E_TOO_LARGE: the first does not;
 * -PIF_E_END_OF_FILE: a number is past the end. Consecutive numbers are read at once: sort them if that does not
 * matter. */
int64_t pif_read_lines(pif_file* file, const uint64_t* numbers, size_t count, void* out, size_t out_bytes,
                       uint32_t* lengths);

/* ---- asynchronous: the memory belongs to the operation until pif_wait has returned for it
 * ---------------------------------- */

/* An operation, at least 0, which is waited for once. pif_is_done: whether pif_wait would return at once. */
int64_t pif_start_read(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count); /* an operation */
int64_t pif_start_write(pif_file* file, uint64_t first, const void* in, size_t bytes);
int64_t pif_wait(pif_file* file, int64_t operation); /* records moved */
int pif_is_done(pif_file* file, int64_t operation);  /* 1 or 0 */

/* ---- bytes
 * ------------------------------------------------------------------------------------------------------------------ */

/* Bytes across records, any format. Bytes read, fewer than `bytes` only at the end of the file; bytes written, all of
 * them, unless it fails. */
int64_t pif_pread(pif_file* file, void* out, size_t bytes, uint64_t offset);
int64_t pif_pwrite(pif_file* file, const void* in, size_t bytes, uint64_t offset);

/* ---- many pieces at once
 * ---------------------------------------------------------------------------------------------------- */

/* Which bytes, and in which order (pif/pattern/pattern.h; pif/pattern/builders.h says what each of the builders makes).
 * A builder copies what it is given, and makes it ready to be used, once. NULL: memory is out. What cannot be, the call
 * says that the pattern is used in. Freed with pif_pattern_free; NULL is allowed there. A pattern may be used any
 * number of times, by any thread. */

/* `count` repetitions, the first `offset` bytes behind the enclosing one, each `stride` bytes behind the one before: of
 * `bytes` bytes, or of what `inner` says. */
typedef struct pif_level {
  int64_t offset;
  uint64_t count;
  int64_t stride;
  uint64_t bytes;
  const struct pif_level* inner;
  size_t inner_count;
} pif_level;
typedef struct pif_piece {
  int64_t offset;
  uint64_t bytes;
} pif_piece;
typedef struct pif_stride {
  int64_t stride;
  uint64_t quantity;
} pif_stride;
/* What an offset counts from: offset 0 of the request; the batch before it in its array, or, for the first, the
 * enclosing one; the end of the batch before it. */
enum pif_origin { PIF_ABSOLUTE = 0, PIF_PREVIOUS = 1, PIF_PREVIOUS_END = 2 };
typedef struct pif_batch {
  int64_t offset;
  enum pif_origin origin;
  uint64_t quantity;
  int64_t stride;
  uint64_t bytes; /* if there are no inner ones */
  const struct pif_batch* inner;
  size_t inner_count;
} pif_batch;

/* extent: distance from one tile to the next; NULL: tiles lie side by side. */
pif_pattern* pif_pattern_levels(const pif_level* levels, size_t count, const int64_t* extent);
pif_pattern* pif_pattern_range(int64_t offset, uint64_t bytes);
pif_pattern* pif_pattern_strided(int64_t offset, uint64_t record_bytes, int64_t stride, uint64_t quantity);
pif_pattern* pif_pattern_nested(int64_t offset, uint64_t record_bytes, const pif_stride* innermost_first, size_t count);
pif_pattern* pif_pattern_batched(const pif_batch* batches, size_t count);
pif_pattern* pif_pattern_list(const pif_piece* pieces, size_t count);
/* The same, with this extent: a tile is so many bytes behind the one before. */
pif_pattern* pif_pattern_tiled(const pif_piece* pieces, size_t count, int64_t extent);
pif_pattern* pif_pattern_partition(int64_t offset, uint64_t group_bytes, int64_t stride);
pif_pattern* pif_pattern_member(uint64_t member, uint64_t members, uint64_t record_bytes, uint64_t position);
pif_pattern* pif_pattern_view(int64_t displacement, const pif_pattern* filetype);
void pif_pattern_free(pif_pattern* pattern);

/* The bytes of both patterns are paired in their order, each tiled as often as it takes. */
typedef struct pif_pieces {
  const pif_pattern* file;
  const pif_pattern* memory; /* offsets in `out` or `in`, never before it */
  int64_t displacement;      /* of the file's pattern: byte 0 of it is there */
  uint64_t skip;             /* bytes of the file's pattern that are passed over */
  uint64_t bytes;            /* of the whole request; 0: one tile of `memory` */
} pif_pieces;

/* Bytes read: fewer only where a piece goes past the end of the file. Bytes written: all of them, unless it fails. A
 * committed file of fixed records is made longer first, by zeros, if a piece ends past its end. */
int64_t pif_read_pieces(pif_file* file, const pif_pieces* wanted, void* out, size_t out_bytes);
int64_t pif_write_pieces(pif_file* file, const pif_pieces* wanted, const void* in, size_t in_bytes);
/* Operations, for pif_wait, which then returns bytes. */
int64_t pif_start_read_pieces(pif_file* file, const pif_pieces* wanted, void* out, size_t out_bytes);
int64_t pif_start_write_pieces(pif_file* file, const pif_pieces* wanted, const void* in, size_t in_bytes);

/* ---- a file being created by several
 * ------------------------------------------------------------------------------------------ */

#define PIF_TOKEN_BYTES_MAX 4096
enum pif_member_state {
  PIF_WRITING = 1,
  PIF_DONE = 2,
  PIF_DROPPED = 3,
  PIF_GONE = 4 /* its connection is not there */
};
typedef struct pif_member {
  uint32_t number; /* 0: who created the file */
  enum pif_member_state state;
} pif_member;

/* The token, of any bytes: how long it is; -PIF_E_TOO_LARGE: `token` has less room. Who has it, and is the same user,
 * joins the file, in any thread or process; pif_commit() of one makes it visible when all have said pif_done(). */
int64_t pif_share(pif_file* file, void* token, size_t token_bytes);
pif_file* pif_join(pif_connection* connection, const void* token, size_t token_bytes);
int pif_done(pif_file* file);
/* How many there are; as many as there is room for, in the order of their numbers, are written to `members`. */
int64_t pif_members(pif_file* file, pif_member* members, size_t count);
int pif_drop(pif_file* file, uint32_t member);
/* What was written so far is durable; it stays invisible. */
int pif_sync(pif_file* file);

/* A number at the PIF Server that several count with, 0 at first. `counter` says which; any connection of the same user
 * may use it. It ends with pif_counter_close(), with the connection of `file`, which is open, or being created and
 * shared, and with the server's run (-PIF_E_NOT_FOUND). pif_counter_add: `before` is its value before `add` was added.
 * It is never below 0 (-PIF_E_INVALID). */
int pif_counter_open(pif_file* file, uint64_t* counter);
int pif_counter_add(pif_connection* connection, uint64_t counter, int64_t add, int64_t* before);
int pif_counter_close(pif_connection* connection, uint64_t counter);

/* ---- forks
 * ------------------------------------------------------------------------------------------------------------ */

/* Named files in the subfiles of a file (Nieuwejaar, Kotz 1997: Galley, section 2): what it has on each of its LFSs.
 * `of`: a file, open or being created. What is a path's elsewhere is a fork's here; by a path, a fork is
 * "FILE/SUBFILE/NAME". A placed file is its forks "data", one after another, for pif_pread() and pif_file_length(); its
 * forks become visible with it: commit and close them before it. */
pif_file* pif_create_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name,
                          const pif_create_options* options);
pif_file* pif_open_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name,
                        enum pif_mode mode);
/* Names are "SUBFILE/NAME", in byte order. */
int pif_list_forks(pif_connection* connection, const pif_file* of, pif_list_function each, void* user);
int pif_remove_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name);

#ifdef __cplusplus
}
#endif

#endif
