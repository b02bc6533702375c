// The standard interface to interleaved files (Dibble 1990, section 3.2): connect, create, open, read, write, seek, all
// in records; a request for many records runs on all LFSs of the file at once. The server is asked for names; records
// travel straight between this process and the LFSs: through passed descriptors on the same machine, else ZeroMQ.
//
// Every function that talks to a daemon has a deadline (ConnectOptions::timeout) and returns errors as values.
// Thread-safety: a Client and its Files belong to one thread at a time; different Clients are independent. Calls of a
// second thread while one is inside get kInvalid (a debug build ends with an assertion). A child of fork() can neither
// use nor close the Clients that its parent made (kInvalid): it connects anew. Files keep their Client alive.
//
// An assertion of the library that breaks inside a call is kInternal, with its text. From then on the calls of that
// Client and its Files give the same error and do nothing; destructors tell nobody. Connect anew. On a thread of the
// library itself, and in a destructor, a broken assertion ends the process. A handler of the program's own
// (pif/base/assert.h) stays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pif/access/data_path.h"
#include "pif/base/capability.h"
#include "pif/base/clock.h"
#include "pif/base/format.h"
#include "pif/base/histogram.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"
#include "pif/pattern/compiled.h"
#include "pif/pattern/pattern.h"

namespace pif::net {
class Messenger;
}
namespace pif::component {
class Storage;
}

namespace pif {

namespace client {
class Session;      // connections and requests; private to client/ and libtool/ (pif/client/session.h)
class FileState;    // one open file
struct FileAccess;  // makes Files (adopt_file in session.h)
}  // namespace client

using access::DataPath;

struct ConnectOptions {
  static constexpr unsigned kThreadsMax = 16;  // by itself: as many fill a memory's bandwidth

  std::string where;           // folder of the file system; empty: $PIF, pif.toml here or above, or the default
  std::string route = "auto";  // auto | unix | ipc | tcp
  DataPath data_path = DataPath::kAuto;
  Duration timeout = std::chrono::seconds(30);
  // Threads of bulk transfers through descriptors; 0: as many as this process has cores, 2 to kThreadsMax. A program
  // with several clients at work at once, in one process or in several, gives each its part.
  unsigned threads = 0;
  std::string program;  // name shown to others, default: the process's
  bool stale = false;   // opens files with marks (Entry::marks), too
};

// A simulation passes these instead of sockets.
struct ClientWorld {
  net::Messenger& messenger;
  component::Storage& storage;  // adopts passed descriptors
  Entropy& entropy;
  unsigned threads_max = 1;  // a simulation runs one actor at a time; what helpers do has no fixed order
};

// How files that are created in a folder are laid out, where their creator does not say so, and folders in it.
struct Striping {
  std::optional<Format> format;
  std::uint32_t width = 0;            // 0: all LFSs that are up
  std::vector<std::uint32_t> nodes;   // NodeIds in order; empty: the server chooses
  std::optional<std::uint32_t> bevy;  // size of all bevies; 0: none

  bool is_empty() const { return !format && width == 0 && nodes.empty() && !bevy; }  // nothing is said
};

struct CreateOptions {
  Format format = Format::fixed(kByteRecordLength);
  std::uint32_t width = 0;            // 0: all LFSs that are up
  std::vector<std::uint32_t> nodes;   // NodeIds in order; empty: the server chooses
  std::vector<std::uint32_t> bevies;  // sizes
  std::uint32_t bevy = 0;             // one size for all; kNoBevies (pif/base/inheriting.h): no parity
  bool same_host_ok = false;          // companion bevies may be on one machine, though there are several
  std::uint32_t mode = 0644;
  // Nothing: the session's. Another's is for root and the file system's owner (kPermission). A set-group-id folder
  // gives its own group.
  std::optional<std::uint32_t> owner, group;
  std::map<std::string, std::string> attributes;
  bool exclusive = false;                   // fail instead of replacing an existing file at commit
  std::optional<std::int64_t> modified_ns;  // its time of modification; nothing: that of its commit
  // The folder's striping, where it has one, decides the format; and width, nodes and bevies as far as they are not
  // set.
  bool inherits_format = false;
  bool inherits_layout = true;
  bool is_small = false;  // of some kilobytes: rows travel in messages where nothing else is asked for (data_path)
  bool placed = false;    // who writes it says where what goes: see "forks" below. No bevies
};

enum class EntryKind : std::uint8_t { kFolder, kFile, kLink, kFifo, kSocket, kCharacterDevice, kBlockDevice };

// Rows of a file that a person accepted as they are, on one LFS.
struct FileMark {
  enum class Kind : std::uint8_t {
    kMixed = 1 /* may be older than others */,
    kLost = 2 /* gone with a root that was replaced */
  };
  std::uint32_t node = 0;
  Kind kind = Kind::kMixed;
  std::int64_t since = 0;  // wall seconds
};

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::kFile;
  std::uint64_t id = 0;
  std::uint64_t inode = 0;  // id of a file's first version: those that take its place keep it
  std::uint32_t owner = 0, group = 0, mode = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // of the bytes or of the entry itself
  Format format;
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> bevies;
  bool is_protected = false;  // its LFSs keep parity; bevies without: made before they did, and can only be read
  FileLength file_length;
  std::map<std::string, std::string> attributes;
  std::vector<FileMark> marks;  // none: every row is as it was acknowledged
  Striping striping;            // of a folder
  bool is_placed = false;       // a file whose data is in forks
  std::string target;           // of a symbolic link: any bytes
  std::uint64_t device = 0;     // of a device: its number, as st_rdev
};

// Changes of an entry's attributes; those that are not set stay.
struct AttributeChange {
  std::optional<std::uint32_t> mode;  // permission bits, with set-user-id, set-group-id and sticky: up to 07777
  std::optional<std::uint32_t> owner, group;
  std::optional<std::int64_t> modified_ns;  // stays, though what was written before is closed or committed later
  std::optional<Striping> striping;         // of a folder; an empty one: none any more
};

struct Node {
  std::uint32_t id = 0;
  std::string name, state, root;  // state: up, suspect, down, draining, stale, failing
  std::uint64_t bytes_total = 0, bytes_free = 0, components = 0, bytes_stored = 0;
  std::uint64_t inodes_total = 0, inodes_free = 0;  // of its local file system; total 0: as many as it needs
  std::uint32_t silent_ms = 0;
  std::int64_t pid = 0;
  std::string unix_path, ipc, tcp;
  std::string uuid;                           // of its root
  std::uint64_t incarnation = 0, number = 0;  // docs/FORMAT.md "Who is how old"
  std::uint64_t taken_back = 0;               // the last incarnation that began though changes had been lost
  std::string trouble;                        // why it serves nothing, or how its disk fails; empty: nothing is wrong
  std::int64_t trouble_since = 0;             // wall seconds
  std::int64_t clock_ahead = 0;               // its clock minus the server's, seconds
  std::int64_t scrubbed = 0;                  // wall seconds: when its last scrub ended; 0: there was none
  std::uint64_t scrub_damages = 0;            // that were found then, and not repaired
  std::uint64_t lacking = 0;                  // files with parity of which it lacks its part
  std::string view_state;                     // in the server's view: member, lost, rebuilding, returning
  std::uint32_t rebuilt_percent = 0;          // of what it is to get back, while it is rebuilding
  std::string host;                           // as pif.toml names it; empty: there is only one
};

struct SystemStatus {
  std::string cluster;
  std::vector<Node> nodes;
  std::uint64_t files = 0, folders = 0, pending = 0, doomed = 0, sessions = 0;
  std::string refused;               // why the server serves nobody, and what to do; empty: it serves
  std::int64_t refused_since = 0;    // wall seconds
  std::uint64_t run = 0, index = 0;  // how far the directory has come
  std::uint64_t view = 0;            // index of the server's view
  // Pairs of companion bevies of the default size, by node; and files that lie on none of these, when counted last.
  std::vector<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> pairs;
  std::uint64_t off_pairs = 0;
};

// How often one operation was asked for, how it ended, how long it took.
struct OperationStats {
  std::string name;  // "read"
  std::uint64_t count = 0, errors = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // records and the like that came, and that went
  Duration total{}, longest{};
  Histogram latency;
};

// One of those whose requests wait for their turn at a daemon.
struct PeerStats {
  std::string program;
  std::uint32_t uid = 0;
  std::uint64_t waiting = 0, waiting_bytes = 0;  // requests, and bytes of their bodies
  std::uint64_t served_bytes = 0;                // so far
};

// Counts of a daemon since it was started.
struct DaemonStats {
  std::string node, version;  // "lfs0"
  std::int64_t pid = 0;
  Duration uptime{};
  std::vector<OperationStats> operations;
  std::map<std::string, std::uint64_t> errors;     // by the code's name
  std::uint64_t under_way = 0, under_way_max = 0;  // requests taken and not yet answered: now, and most at once
  std::uint64_t log_bytes = 0, log_bytes_max = 0;  // of an LFS's redo log
  std::uint64_t log_written = 0;                   // bytes that the log has taken since the start
  std::uint64_t view = 0;                          // of an LFS: index of the view that it has adopted
  bool has_lease = false;                          // of an LFS: it may act alone for some seconds
  std::vector<PeerStats> peers;                    // the longest queues first, at most 64
  std::uint64_t peers_waiting = 0;                 // how many there are
};

struct ListPage {
  std::vector<Entry> entries;
  bool more = false;
};

// Variable records in a batch: lengths, and their bytes packed.
struct RecordBatch {
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
};

struct TransferCounts {
  std::uint64_t bytes_by_descriptor = 0;
  std::uint64_t bytes_by_message = 0;
};

// An open file, or one being created; Client makes them. Errors that its calls may give beside those they name:
// kInvalid (closed, aborted or committed), kStaleFile (deleted or replaced since it was opened), kTimeout and
// kUnavailable (a daemon, which is named), kCorrupt and kIo (rows that cannot be had), kNoSpace.
class File {
 public:
  // Made so, or moved from, it is no file: it may only be assigned to and destroyed.
  File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();  // closes; a file never committed is aborted; errors of that are dropped

  // Its properties as of its opening or creation: these ask nobody, and never change. Valid as long as the File.
  // attributes(): the named ones. id(): of this incarnation, never given to another file.
  const Format& format() const;
  const parity::Layout& layout() const;
  std::span<const std::uint32_t> nodes() const;  // NodeId of LFS 0, 1, ...
  const std::map<std::string, std::string>& attributes() const;
  std::uint64_t id() const;
  bool is_placed() const;  // see Client, "forks"
  // The entry of an opened file, as the server had it then; it is empty for one being created.
  const Entry& entry() const;
  // Records and bytes: of a committed file as published when asked; of one being written as written so far.
  [[nodiscard]] Result<FileLength> file_length();
  // The length by which the last read or write here went. Asks nobody.
  FileLength file_length_seen() const;

  // ---- position, in records ----
  // Where read(), write(), read_batch() and write_batch() go on; each moves it behind what it has moved. 0 at first.
  RecordNumber position() const;
  // kInvalid past the end (the end itself is allowed).
  [[nodiscard]] Status seek(RecordNumber record);

  // ---- fixed records ----
  // Up to `count` records from the position into `out` (packed, out.size() >= count * record_length; a short last
  // record is shorter). Returns records read, 0 at the end of the file; the position moves behind them. A last record
  // that somebody fills up meanwhile is read as it is now, or, if `out` has room only for what was known of it, as it
  // was: whole in either case, and file_length_seen() says which. kEndOfFile: it begins past the end; kInvalid: `out`
  // is too small, or the records have no fixed length; kUnsupported: of a file being created, what went by message.
  [[nodiscard]] Result<std::uint64_t> read(std::span<std::byte> out, std::uint64_t count);
  [[nodiscard]] Result<std::uint64_t> read_at(RecordNumber first, std::span<std::byte> out, std::uint64_t count);
  // Writes records at the position: whole ones (in.size() a multiple of record_length; the last one may be short only
  // at the end of a file being created). At the end they are appended, before it overwritten, never past it
  // (kEndOfFile). kInvalid: they do not fit, or the records have no fixed length; kPermission: it is open for reading;
  // kUnsupported: in a committed file with parity nothing can be overwritten.
  // Records of a committed file are durable when it returns; after an error any of them may have been written.
  [[nodiscard]] Status write(std::span<const std::byte> in);
  [[nodiscard]] Status write_at(RecordNumber first, std::span<const std::byte> in);

  // ---- variable records ----
  // Up to `count` records from the position, or from `first`: as many as `bytes_max` holds, but at least one, whatever
  // its length; none at the end of the file. kEndOfFile: it begins past the end; kInvalid: the records have a fixed
  // length; kUnsupported: of a file being created, what went by message.
  [[nodiscard]] Result<RecordBatch> read_batch(std::uint64_t count, std::size_t bytes_max = 4u << 20);
  [[nodiscard]] Result<RecordBatch> read_batch_at(RecordNumber first, std::uint64_t count,
                                                  std::size_t bytes_max = 4u << 20);
  // Writes records at the position, or at `first`: lengths, one for each, and their bytes, packed; delimited ones with
  // their delimiters. At the end they are appended; before it, in a committed file, overwritten: each keeps its length.
  // kInvalid: the lengths do not fit the bytes or the records there, a delimiter is missing, some records are before
  // the end and some past it, or records have a fixed length; kTooLarge: one over kRecordLengthMax; kUnsupported:
  // before the end of a file being created, or of one with parity; kEndOfFile; kPermission.
  [[nodiscard]] Status write_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  [[nodiscard]] Status write_batch_at(RecordNumber first, std::span<const std::uint32_t> lengths,
                                      std::span<const std::byte> data);

  // ---- several requests at once ----
  struct ReadRequest {
    RecordNumber first = 0;
    std::uint64_t count = 0;
    std::span<std::byte> out;
    std::uint64_t done = 0;  // records read
  };
  // All requests at once on all LFSs (fixed records); each gets what read_at() would return. After an error nothing
  // is known of any.
  [[nodiscard]] Status read_many(std::span<ReadRequest> requests);

  // ---- asynchronous forms ----
  // Starts read_at() or write_at(); the memory belongs to the operation until wait() has returned for it. Errors:
  // theirs, and kTooLarge if too many are under way already. wait(): once for each operation, else kInvalid. is_done():
  // whether wait() would return at once, perhaps with an error. Closing the file ends all of them.
  using Operation = std::uint64_t;
  [[nodiscard]] Result<Operation> start_read(RecordNumber first, std::span<std::byte> out, std::uint64_t count);
  [[nodiscard]] Result<Operation> start_write(RecordNumber first, std::span<const std::byte> in);
  [[nodiscard]] Result<std::uint64_t> wait(Operation operation);  // records moved; of pieces: bytes
  bool is_done(Operation operation);

  // ---- many pieces at once ----
  // Bytes of the byte view, and their places in memory, as patterns (pif/pattern/pattern.h; builders.h makes the usual
  // ones): the bytes of both are paired in the order of the patterns, each tiled as often as it takes.
  struct Pieces {
    patterns::Pattern file;
    patterns::Pattern memory;
    std::int64_t displacement = 0;       // of the file's pattern: byte 0 of it is there
    std::uint64_t skip = 0;              // bytes of the file's pattern that are passed over
    std::optional<std::uint64_t> bytes;  // of the whole request; default: one tile of `memory`
    // Where they are set, they stand for `file` and `memory`, which are not looked at.
    std::shared_ptr<const patterns::CompiledPattern> compiled_file = {};
    std::shared_ptr<const patterns::CompiledPattern> compiled_memory = {};
  };
  // Bytes that were read: fewer only where a piece goes past the end of the file; those before it, in their order, have
  // come. Bytes that are asked for several times come each time. kInvalid, kTooLarge: patterns that cannot be (it is
  // said what), or that go past the memory or before the file's first byte.
  [[nodiscard]] Result<std::uint64_t> read_pieces(const Pieces& wanted, std::span<std::byte> out);
  // Where bytes are written several times the last write counts. In a committed file as pwrite(), piece by piece. Where
  // a piece ends past its end, zeros are appended up to there first, once if several clients do so. Records of variable
  // length keep their lengths (kEndOfFile, and nothing is written). A file being created may be written anywhere; what
  // nobody writes is zero, and takes no room. kUnsupported: variable records of a file being created.
  [[nodiscard]] Status write_pieces(const Pieces& wanted, std::span<const std::byte> in);
  // Start them; wait() then returns bytes. As of start_read(): the memory belongs to the operation.
  [[nodiscard]] Result<Operation> start_read_pieces(const Pieces& wanted, std::span<std::byte> out);
  [[nodiscard]] Result<Operation> start_write_pieces(const Pieces& wanted, std::span<const std::byte> in);

  // ---- a file being created by several ----
  // Fixed records. Whoever has the token, for a day, and is the same user, may join() (Client), in any thread, process
  // or machine, and is a *member* then, as this File is: number 0. Each writes and reads anywhere with write_at(),
  // pwrite(), write_pieces(), read_at(), pread(), read_pieces(), sees what all have written, and zeros elsewhere; there
  // is no end of file. A byte that two write at the same time has the value of one of them. When all have said done(),
  // one of them says commit(); until then nobody else sees anything. A File that is destroyed leaves the file to the
  // others; it is given up when all their clients have gone, or by abort() of one. kUnavailable: an LFS of it is lost.
  [[nodiscard]] Result<std::string> share();
  // Nothing more is written here. kCancelled: this member was dropped.
  [[nodiscard]] Status done();
  struct Member {
    enum class State : std::uint8_t { kWriting = 1, kDone = 2, kDropped = 3, kGone = 4 /* its client is not there */ };
    std::uint32_t number = 0;
    State state = State::kWriting;
    std::string program;
  };
  // kInvalid, of the following too: nobody shares it.
  [[nodiscard]] Result<std::vector<Member>> members();
  // Drops a member that is not done: what it wrote may be there, or not. commit() goes on without it.
  [[nodiscard]] Status drop(std::uint32_t member);
  // Makes all that was written durable at the LFSs; it stays invisible.
  [[nodiscard]] Status sync();
  // Reserves room for the first `bytes` bytes of a file being created, fixed records, so that no write there fails for
  // lack of it. Its length does not change; what nobody writes is zero. kNoSpace: less is free.
  [[nodiscard]] Status preallocate(std::uint64_t bytes);
  // Sets the length, in bytes, of a file being created with fixed records. Bytes that are cut off are gone: where the
  // file grows again, by this or by a write, there are zeros. Where several write it, each member calls it with the
  // same length, and none writes before all have.
  [[nodiscard]] Status resize(std::uint64_t bytes);

  // ---- appending to a committed file, several clients at once ----
  // All records of one call are consecutive; returns the number of the first. Durable and visible when it returns.
  // kInvalid behind a short last record, or (delimited records) behind one that lacks its delimiter. With parity an LFS
  // that does not answer is waited for, or done without once it is lost; kUnavailable: it was not by the timeout, or
  // two are lost of which the records need one.
  [[nodiscard]] Result<RecordNumber> append(std::span<const std::byte> in);
  // Fixed records: bytes that go on where the file ends, a short last record filled up first. Returns where they begin.
  [[nodiscard]] Result<std::uint64_t> append_bytes(std::span<const std::byte> in);
  // Variable records, given as to write_batch(). Returns the number of the first.
  [[nodiscard]] Result<RecordNumber> append_batch(std::span<const std::uint32_t> lengths,
                                                  std::span<const std::byte> data);

  // ---- the byte view ----
  // Bytes across records, any format. pread: fewer only at the end. pwrite: inside or at the end, past it zeros fill
  // the gap (fixed records; of a file being created they take no room); variable records keep their lengths. kTooLarge
  // past kFileBytesMax, and in a committed file for a gap of over kGapBytesMax (pif/base/limits.h). pwrite,
  // kUnsupported: before the end of a committed file with parity. Zeros that were written when the time was up
  // (kTimeout) stay: the file ends with them.
  [[nodiscard]] Result<std::size_t> pread(std::span<std::byte> out, std::uint64_t offset);
  [[nodiscard]] Result<std::size_t> pwrite(std::span<const std::byte> in, std::uint64_t offset);

  // ---- end ----
  // A file being created: durable, and visible under its name, when it returns; then it is closed here. kExists: it is
  // exclusive, and the name is taken; kIsDirectory: a folder has the name; kNotFound: its folder is gone; kStaleFile:
  // it was aborted meanwhile; kOldView: it has parity, and an LFS was lost or came back since it was created: write it
  // again, as after a write that says so. kTimeout and kUnavailable say so if it may be committed all the same. It may
  // be asked again. For a file that several write it says done() first; kBusy: a member is writing, kUnavailable: it is
  // gone (drop() it, if that is meant); both name it.
  [[nodiscard]] Status commit();
  // The same of a file of create_instead_of() or create_now(). kRetry: the one whose place it takes has another length
  // by now, as far as the server knows; ask again, or give it up.
  [[nodiscard]] Status commit_if(const FileLength& length_of_replaced);
  // Nothing happens to a file that is closed already. An error is of word to the server, which finds out by itself.
  [[nodiscard]] Status abort();  // of a file being created, else kInvalid: removes what was written
  [[nodiscard]] Status close();  // of an opened file; of one being created: abort()

  // Bytes of records that this File has moved so far, in and out, by the way they took. Asks nobody.
  TransferCounts transfers() const;

  client::FileState& state() { return *state_; }  // for libtool; valid as long as the File

 private:
  friend class Client;
  friend struct client::FileAccess;
  explicit File(std::unique_ptr<client::FileState> state);
  std::unique_ptr<client::FileState> state_;
};

// A session at one file system. Paths are absolute, UTF-8, as base/path.h has them; what is wrong with one is kInvalid
// or kTooLarge. Errors that calls with paths may give beside those they name: kNotFound, kNotDirectory and kPermission
// (of the path, or a folder above it), kTimeout and kUnavailable (the server), kStaleServer (it serves nobody until a
// person decides). Where a change may have happened although no answer came, the error's text says so.
class Client {
 public:
  // kNotFound: no file system is there; kInvalid: an unknown route, or a pif.toml that is wrong; kUnavailable,
  // kTimeout: its server cannot be reached; kPermission: it cannot tell who asks; kBusy: it has too many sessions;
  // kVersion.
  [[nodiscard]] static Result<Client> connect(ConnectOptions options = {});
  // In a simulation: `server` is the server's endpoint there. Objects in `world` outlive the Client and its Files.
  [[nodiscard]] static Result<Client> connect_in(ClientWorld world, const std::string& server,
                                                 ConnectOptions options = {});
  // Moved from, it may only be assigned to and destroyed. The session ends with the Client and the last of its Files.
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // A new file, which nobody sees before its commit(); until then a file of that name stays as it is. kInvalid: a
  // format or layout that cannot be; kUnavailable: too few LFSs are up, or one that is named is not; kExists:
  // `exclusive`, and the name is taken; kIsDirectory: a folder has the name.
  [[nodiscard]] Result<File> create(const std::string& path, const CreateOptions& options = {});
  enum class Mode : std::uint8_t { kRead, kWrite /* and read */, kHold /* read, and nobody may write meanwhile */ };
  // A committed file. kBusy: kWrite while somebody holds it, or kHold while somebody writes, whom it names, or too many
  // files are open; kStaleData: it has marks, and ConnectOptions::stale is not set; kIsDirectory.
  [[nodiscard]] Result<File> open(const std::string& path, Mode mode = Mode::kRead);
  // A committed file by its id, which somebody has passed on. kStaleFile: it is gone, or may not be reached.
  // Otherwise as open().
  [[nodiscard]] Result<File> open_by_id(std::uint64_t id, Mode mode = Mode::kRead);
  struct CreatedNow {
    File file;
    Entry entry;  // of the empty file
  };
  // The name is there when it returns, in one transaction: an empty committed file. `file` is being created, and its
  // commit takes that file's place, as that of create_instead_of(). Given up, it leaves the empty file. A file that had
  // the name is replaced at once; kExists: `exclusive`, and the name is taken. kInvalid: it is placed, or a fork.
  [[nodiscard]] Result<CreatedNow> create_now(const std::string& path, const CreateOptions& options = {});
  // A new version of the committed file `id`, which its writers may make: of its format, with its named attributes, on
  // its LFSs, or others where one of these is not there. The commit takes the file's place under whatever name it has
  // by then, with its owner, group, mode, named attributes and inode. If two rewrite a file so, the last commit wins.
  // kStaleFile, from here: it was removed or replaced; from the commit: all its versions are gone, or, commit_if(), it
  // itself is; kUnsupported: it has forks.
  [[nodiscard]] Result<File> create_instead_of(std::uint64_t id);
  // A file that another client creates and shares (File::share()). kPermission: of another user; kBadCapability: no
  // token, or one that has expired; kStaleFile: it was committed or given up; kExists: this client is a member already.
  [[nodiscard]] Result<File> join(std::string_view token);
  // Many small files at once: requests are sent together, and answers come in the order asked. Some hundreds at a time
  // use the daemons best: their changes share transactions and syncs. One that fails takes no other with it.
  struct NewFile {
    std::string path;
    CreateOptions options;
  };
  // Does as create() for each of them: the file, or its error.
  std::vector<Result<File>> create_many(std::span<const NewFile> files);
  // Does as File::commit for files that this client creates (kInvalid for others); how each ended, in their order.
  std::vector<Status> commit_many(std::span<File* const> files);
  // For reading, as CreateOptions::is_small says.
  std::vector<Result<File>> open_small_many(std::span<const std::string> paths);
  // All bytes of each, as File::pread gives them, in the order asked. The caller knows that they are small. Files of
  // another client: kInvalid.
  std::vector<Result<std::vector<std::byte>>> read_many(std::span<File* const> files);
  // Does as File::close. After an error some of them may still be open.
  [[nodiscard]] Status close_many(std::span<File* const> files);
  // An empty file, durable: one directory transaction. Errors: those of create() and of File::commit().
  [[nodiscard]] Status create_empty(const std::string& path, const CreateOptions& options = {});
  // Many at once: requests are sent together, and errors come back in the order asked (ok: nothing). An error of the
  // whole call (a path that is not UTF-8, a format that cannot be): nothing was sent.
  [[nodiscard]] Result<std::vector<Status>> create_empty_many(std::span<const std::string> paths,
                                                              const CreateOptions& options = {});

  // The owner of what is made: CreateOptions::owner, group.
  struct Owner {
    std::optional<std::uint32_t> user, group;
  };

  // Durable when it returns. parents: missing folders above are made, too, and a folder that is there is no error;
  // without it kExists. mode: permission bits of all that are made.
  // striping: of those that are made; default: that of the folder above.
  [[nodiscard]] Status make_folder(const std::string& path, bool parents = false, std::uint32_t mode = 0755,
                                   const std::optional<Striping>& striping = {}, const Owner& owner = {});
  struct NewOther {
    EntryKind kind = EntryKind::kLink;
    std::string target;        // of a link
    std::uint64_t device = 0;  // of a device: st_rdev
    std::uint32_t mode = 0777;
    std::optional<std::uint32_t> owner, group;  // as CreateOptions has them
  };
  // Makes another kind of entry, in one transaction. It has no bytes: opening it is kInvalid, and no path leads through
  // it, for nobody follows a link here. kExists; kTooLarge: a target over 4,095 bytes; kInvalid: a target, or a
  // device's number, where none can be; kPermission: devices are for root and the file system's owner.
  [[nodiscard]] Status create_other(const std::string& path, const NewOther& what);
  struct NewFolder {
    std::string path;
    std::uint32_t mode = 0755;
  };
  // Many at once, none of them inside another; how each ended, in their order.
  [[nodiscard]] std::vector<Status> make_folder_many(std::span<const NewFolder> folders);
  // Changes any entry, all at once, durably. The mode and the time are its owner's to change, and the group, to one
  // that he is in; the owner is root's and the file system's owner's to change.
  [[nodiscard]] Status change_attributes(const std::string& path, const AttributeChange& change);
  // The entry, whose name is the path's last; of a file that is open for writing file_length is a hint.
  [[nodiscard]] Result<Entry> stat(const std::string& path);
  // One answer for each path, in their order; an error of the whole call: none is known.
  [[nodiscard]] Result<std::vector<Result<Entry>>> stat_many(std::span<const std::string> paths);
  // Entries of a folder with names after `after` in byte order: at most `limit` (0: as the server likes), or fewer;
  // ListPage::more says whether there are others. Names that come and go meanwhile may be missed.
  [[nodiscard]] Result<ListPage> list(const std::string& path, const std::string& after = {},
                                      std::uint32_t limit = 1000);
  // Anything but a folder, or an empty folder; recursive: with all that is in it, else kNotEmpty. Whoever has a file
  // open keeps it. Durable when it returns; a recursive one that failed has removed a part.
  [[nodiscard]] Status remove(const std::string& path, bool recursive = false);
  // Many at once, none of them recursively; how each ended, in their order. An error of the whole call: some may be
  // gone.
  [[nodiscard]] Result<std::vector<Status>> remove_many(std::span<const std::string> paths);
  // In one step, durable; what is no folder, or an empty one, that has the name `to` is replaced. kExists: no_replace,
  // and it is taken; kInvalid: a folder into itself; kNotEmpty, kIsDirectory, kNotDirectory: what is there cannot be
  // replaced.
  [[nodiscard]] Status rename(const std::string& from, const std::string& to, bool no_replace = false);
  // ---- forks (Nieuwejaar, Kotz 1997: Galley, section 2) ----
  // A subfile is what a file has on one of its LFSs. Each may have *forks* beside its rows: named files of width 1 on
  // that LFS, without parity, made and removed at any time, each as long as it likes. A fork's path is the file's, then
  // "/SUBFILE/NAME"; what can be done to a file by its path can be done to a fork. Whoever may write the file may make
  // and remove forks. They move with the file, and go with it.
  // A *placed* file has nothing but forks. Its bytes (pread(), file_length()) are those of the forks "data" of its
  // subfiles, one after another; its writer says which of them gets what. Forks made before its commit() are seen with
  // it: all of them, or none.
  // These reach forks through the file, whatever its path is by now, and before its commit(). create_fork: a fork that
  // has the name is replaced at the fork's commit; inherits_format: its format is that of a placed file. kInvalid: no
  // such subfile, a name that cannot be, a layout; kUnavailable: its LFS is not there; kStaleFile: the file is gone.
  [[nodiscard]] Result<File> create_fork(const File& of, std::uint32_t subfile, const std::string& name,
                                         const CreateOptions& options = {});
  // kNotFound: there is none. Otherwise as open().
  [[nodiscard]] Result<File> open_fork(const File& of, std::uint32_t subfile, const std::string& name,
                                       Mode mode = Mode::kRead);
  // As list(); names are "SUBFILE/NAME", in byte order.
  [[nodiscard]] Result<ListPage> list_forks(const File& of, const std::string& after = {}, std::uint32_t limit = 1000);
  [[nodiscard]] Status remove_fork(const File& of, std::uint32_t subfile, const std::string& name);

  // The server's state and those of its LFSs. wait_up: waits until so many LFSs are up, or most of the timeout has
  // passed: fewer are no error.
  [[nodiscard]] Result<SystemStatus> status(std::uint32_t wait_up = 0);

  // Calls of this client and its files that wait for an answer ask this function, at once and then each 100 ms, whether
  // they are to end. Where it says true they end with kCancelled, as after a timeout: what they had begun may be done.
  // It runs on the calling thread, and calls nothing of the client. Empty: nothing is asked.
  void on_wait(std::function<bool()> wants_to_stop);

  // The requests of this client and its files so far. Transfers through passed descriptors are no requests.
  std::vector<OperationStats> stats() const;
  // The server, then the LFSs that are up and answer.
  [[nodiscard]] Result<std::vector<DaemonStats>> daemon_stats();

  client::Session& session() { return *session_; }  // for libtool; valid as long as the Client

 private:
  explicit Client(std::shared_ptr<client::Session> session);
  std::shared_ptr<client::Session> session_;
};

}  // namespace pif
