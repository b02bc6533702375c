// One open file: its rights, its components, how long it is, and who reads and writes it. Each of these knows its own
// part; what they share is here. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "file/appender.h"
#include "file/created_writer.h"
#include "file/known_length.h"
#include "file/overwriter.h"
#include "file/placed_bytes.h"
#include "file/record_reader.h"
#include "file/scattered_writer.h"
#include "pif/access/component_access.h"
#include "pif/access/grant.h"
#include "pif/client/session.h"

namespace pif::client {

class AsyncOperation;

// How a file was opened or created, beside its parts.
struct OpenKind {
  bool adopted = false;   // on somebody else's parts: not ours to commit, abort or close
  bool held = false;      // nobody can change its length
  bool is_small = false;  // rows go in messages, where nothing else is asked for: no descriptors for so little
  std::optional<std::int64_t>
      modified_ns;  // of a file being created: its time of modification; nothing: that of its commit
};

class FileState {
 public:
  // kOpen, kCreating -> kEnded; kCreating -> kSealing -> kEnded. kSealing: LFSs seal it, or have done so; if the commit
  // fails, it can be asked for again, and the file can be given up, but no more be written.
  enum class Phase : std::uint8_t { kOpen, kCreating, kSealing, kEnded };

  FileState(std::shared_ptr<Session> session, FileParts parts, const OpenKind& kind);
  ~FileState();
  FileState(const FileState&) = delete;
  FileState& operator=(const FileState&) = delete;

  // ---- what everybody needs ----
  // kInvalid once the file is closed, committed or aborted, or its commit has begun; and of a placed file, which has no
  // records of its own.
  [[nodiscard]] Status check_usable() const;
  // kInvalid once the file is closed, committed or aborted.
  [[nodiscard]] Status check_not_ended() const;
  // kPermission for a file opened for reading.
  [[nodiscard]] Status check_may_write() const;
  // kUnsupported for a committed file whose LFSs keep parity.
  [[nodiscard]] Status check_may_overwrite() const;
  // Before every operation: renews the capability when it is about to expire.
  [[nodiscard]] Status keep_rights() {
    const std::int64_t now = session->clock().wall_seconds();
    session->keep_alive(now);
    if (kind.held && hellos_ != session->hellos()) [[unlikely]] {  // whether it is held still
      hellos_ = session->hellos();
      grant.renew_next();
    }
    if (is_degraded()) [[unlikely]]
      follow_members();
    return grant.keep(now);
  }
  // One request to the LFS, again with a fresh right if this one has expired.
  [[nodiscard]] Result<net::Packet> ask_node(LfsIndex lfs, const proto::Envelope& envelope);
  [[nodiscard]] Status run(access::Requests& requests) { return session->run(requests); }
  // Asks the server who takes part now, and goes by it from here on; not while the file is being created. Whether that
  // has changed. Takes at most `patience`, and a few seconds. Errors: those of ask_server().
  [[nodiscard]] Result<bool> look_anew(Duration patience);
  // Whether the LFS is done without: absent in the view, or it did not answer a moment ago.
  bool is_away(LfsIndex lfs) const { return parts.is_absent(lfs) || session->links().was_away(node(lfs).id()); }
  // read(): of a file with parity it is done once more where an LFS did not answer, and others take part by now than it
  // went by, or it passed over an LFS that may be back.
  template <typename Read>
  [[nodiscard]] auto in_newest_view(const Read& read) -> decltype(read()) {
    const std::uint64_t passed_over = session->links().passed_over();
    auto done = read();
    if (done || !may_read_again(done.error(), passed_over)) return done;
    return read();
  }
  // Whether another read may succeed after this one, which has failed. passed_over: LfsLinks::passed_over() before it.
  [[nodiscard]] bool may_read_again(const Error& error, std::uint64_t passed_over);
  // The meaning of an LFS's kStaleNode: the LFS has fewer records than the server knew of. Either it has lost some, or
  // the file was removed since it was opened; LFSs forget removed files at a restart. Asks the server, for some seconds
  // at most. Returns kStaleFile if the file is gone, `error` if it is there, the server's error if it does not answer:
  // nobody should look for a loss that may be none. Other errors, and errors under a borrowed right, come back as they
  // are.
  [[nodiscard]] Error removed_or(Error error);
  // The LFS that grants and publishes ranges of appends in the view: LFS 0, or, where that is absent, its deputy.
  // kUnavailable: both are.
  [[nodiscard]] Result<LfsIndex> sequencer() const;
  bool creating() const { return phase == Phase::kCreating || phase == Phase::kSealing; }
  std::uint32_t width() const { return parts.layout.width(); }
  const proto::NodeInfo& node(LfsIndex lfs) const { return parts.nodes[lfs]; }
  access::ComponentAccess& component(LfsIndex lfs) { return *components[lfs]; }

  // ---- writing, of either kind ----
  [[nodiscard]] Status write(RecordNumber first, std::span<const std::byte> in);
  [[nodiscard]] Status write_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                   std::span<const std::byte> data);
  // Whether lengths and bytes belong together, and to records of this file. `data` are variable records.
  [[nodiscard]] Status check_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) const;
  [[nodiscard]] Status past_end(RecordNumber record) const;  // as an error
  // For a file that is created in pieces: where `bytes` bytes from this record on are written, now. Errors: that they
  // cannot be.
  [[nodiscard]] Result<std::uint64_t> scattered_offset(RecordNumber first, std::size_t bytes);
  // Whether pieces may be written up to this byte: kTooLarge, or kEndOfFile of a committed file.
  [[nodiscard]] Status check_piece_end(std::uint64_t end);

  // Bytes were written, or were to be: the file's times move. For a committed file it notifies the server, at most once
  // a second. tell_written(): at once, unless the server knows.
  void note_written();
  [[nodiscard]] Status tell_written();

  // ---- the byte view (byte_view.cc) ----
  [[nodiscard]] Result<std::size_t> pread(std::span<std::byte> out, std::uint64_t offset);
  [[nodiscard]] Result<std::size_t> pwrite(std::span<const std::byte> in, std::uint64_t offset);
  // The record that holds byte `offset`, which is inside the file.
  struct RecordStart {
    RecordNumber record = 0;
    std::uint64_t start = 0;  // of its first byte
  };
  [[nodiscard]] Result<RecordStart> record_at_byte(std::uint64_t offset);

  // ---- members of a file that several write (sharing.cc) ----
  bool is_shared() const { return member.has_value(); }
  // kInvalid: this member has said that it is done.
  [[nodiscard]] Status check_not_done() const;
  [[nodiscard]] Result<std::string> share();
  [[nodiscard]] Status done();
  [[nodiscard]] Result<std::vector<proto::MembersReply::One>> members();
  [[nodiscard]] Status drop(std::uint32_t number);
  [[nodiscard]] Status sync();
  [[nodiscard]] Status preallocate(std::uint64_t bytes);
  [[nodiscard]] Status resize(std::uint64_t bytes);
  // A committed file of fixed records is at least so long: zeros are appended, each once, whoever else does the same.
  [[nodiscard]] Status lengthen(std::uint64_t bytes);

  // ---- the end ----
  // Runs all operations that are under way to their ends; each still has its outcome. The first error.
  [[nodiscard]] Status finish_operations();
  [[nodiscard]] Status seal();
  // if_length: of the file whose place this one takes, else kRetry.
  [[nodiscard]] Status commit(const std::optional<FileLength>& if_length = {});
  [[nodiscard]] Status commit_at_server(const FileLength& file_length, const std::optional<FileLength>& if_length = {});
  // Rows and seals are on their way; writer.requests() says when they have arrived.
  [[nodiscard]] Status start_sealing();
  net::Packet commit_request(const FileLength& file_length) const;
  Change commit_change() const { return {"the file was committed", parts.path, true, kCommitPatience}; }
  [[nodiscard]] Status abort();
  [[nodiscard]] Status close();

  const std::shared_ptr<Session> session;
  access::Grant grant;
  const FileParts& parts;  // grant's
  // The directory's length at the opening: of a marked file the only one where LFS 0 has no component any more.
  FileLength directory_length;
  bool is_marked = false;  // opened with --stale: rows of it may be gone, and what LFS 0 knew of its length
  const OpenKind kind;
  Entry entry;  // of an opened file, as it was then
  Phase phase = Phase::kOpen;
  std::vector<std::unique_ptr<access::ComponentAccess>> components;  // by LFS
  KnownLength length;
  RecordReader reader;
  CreatedWriter writer;                 // of a file being created
  ScatteredWriter scattered;            // the same, once it is written in pieces
  Overwriter overwriter;                // of a committed one
  Appender appender;                    // the same
  PlacedBytes placed;                   // of a placed file
  std::optional<std::uint32_t> member;  // of a file being created by several: its number
  bool is_done = false;                 // and it has said so
  TransferCounts counts;
  RecordNumber position = 0;
  std::int64_t last_written = 0;  // wall nanoseconds: when it was written to last from here; 0: it was not
  std::map<File::Operation, std::unique_ptr<AsyncOperation>> operations;
  File::Operation next_operation = 1;

 private:
  // Whether it may be that LFSs are done without, which are back by now.
  bool is_degraded() const {
    return parts.is_protected() && (grant.has_absent() || session->links().has_away()) && !creating();
  }
  void follow_members();
  bool go_by(const proto::NodesReply& now);
  [[nodiscard]] Status check_may_commit();
  void enter_sealing();
  // All members of a file that several write must be done. Then it is as long as they have written.
  [[nodiscard]] Status seal_scattered();
  [[nodiscard]] Status write_committed(RecordNumber first, std::span<const std::byte> in);
  void forget_components();

  // Adds to its closing how long the file is, and when it was written to.
  void add_note(proto::Close& close) const;

  static constexpr Duration kTellEvery = std::chrono::seconds(1);
  bool is_untold_ = false;          // that it was written to, at last_written
  Time tell_at_{};                  // the server of a write, not before
  std::uint64_t members_seen_ = 0;  // MemberWatch::answers() that `parts` go by
  std::uint64_t hellos_ = 0;        // of the session, when the server was last known to hold it
};

}  // namespace pif::client
