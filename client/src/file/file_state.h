// One open file: what the server said of it, how far it goes, and a port to each of its components. The operations on
// it are grouped by concern: file_state.cc (life, rights, length), port.cc (descriptors), file_read.cc, file_write.cc,
// variable.cc, overwrite.cc, append.cc, byte_view.cc, async.cc. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "file/split.h"
#include "pif/client/session.h"
#include "pif/component/component.h"
#include "session/message_io.h"

namespace pif::client {

// Rows for an LFS of a file being created by message, gathered until they are worth a message.
struct Stage {
  Row first = 0;
  std::uint64_t rows = 0;
  std::vector<std::uint32_t> lengths;  // variable records
  std::vector<std::byte> data;
};

// How one component is reached. Descriptors are asked for at first use and kept.
struct Port {
  enum class Way : std::uint8_t { kUnknown, kDescriptors, kMessages };
  Way way = Way::kUnknown;
  component::Files files;  // the reader and writer point here: ports do not move
  std::unique_ptr<component::Reader> reader;
  std::unique_ptr<component::Writer> writer;  // of a file being created
  bool unfinished = false;                    // the writer holds what the reader's tail does not know
  Stage stage;
  std::uint64_t rows = 0;                    // written, of a file being created
  std::uint64_t bytes = 0;                   // the same, variable records only
  std::shared_ptr<proto::Envelope> sealing;  // how this component is sealed, once writing has ended
};

struct AsyncOperation;

class FileState {
 public:
  enum class Phase : std::uint8_t { kOpen, kCreating, kEnded };

  // adopted: on somebody else's parts, not ours to commit, abort or close.
  FileState(std::shared_ptr<Session> session, FileParts parts, bool adopted = false);
  ~FileState();

  // ---- rights and length (file_state.cc) ----
  // kInvalid once the file is closed, committed or aborted.
  [[nodiscard]] Status check_usable() const;
  // kPermission for a file opened for reading.
  [[nodiscard]] Status check_may_write() const;
  // Before every operation: renews the capability when it is about to expire.
  [[nodiscard]] Status keep_rights() {
    const std::int64_t now = session->clock().wall_seconds();
    session->keep_alive(now);
    if (held && hellos_ != session->hellos()) [[unlikely]] {  // whether it is held still
      hellos_ = session->hellos();
      grant.renew_next();
    }
    return grant.keep(now);
  }
  // The file's length: as written when creating, else as its sequencer says (asked again each time if `fresh`).
  [[nodiscard]] Result<FileLength> length(bool fresh);
  // The length, asked anew if `records` are more than known, or end with a short record, which others may have filled
  // up.
  [[nodiscard]] Result<FileLength> length_for(std::uint64_t records);
  // Whether the last record, as far as is known here, is shorter than the others.
  bool ends_short() const {
    return parts.format.is_fixed() && file_length.bytes < file_length.records * parts.format.record_length;
  }
  std::uint32_t record_bytes(RecordNumber n) const {
    return fixed_record_bytes(parts.format.record_length, file_length, n);
  }
  bool creating() const { return phase == Phase::kCreating; }
  std::uint32_t width() const { return parts.layout.width(); }
  component::Shape component_shape() const { return component::Shape::of(parts.file, parts.format); }

  [[nodiscard]] Status commit();
  [[nodiscard]] Status commit_at_server(const FileLength& file_length);
  // Rows and seals are on their way; `behind` says when they have arrived.
  [[nodiscard]] Status start_sealing();
  net::Packet commit_request(const FileLength& file_length) const;
  Change commit_change() const { return {"the file was committed", parts.path, true, kCommitPatience}; }
  [[nodiscard]] Status abort();
  [[nodiscard]] Status close();

  // ---- ports (port.cc) ----
  // Finds out how the component of `lfs` is read, and attaches it if by descriptors.
  [[nodiscard]] Status open_reader(LfsIndex lfs);
  [[nodiscard]] Status open_writer(LfsIndex lfs);
  // Reader tails anew, after the component has grown or its last chunk has changed.
  [[nodiscard]] Status attach_again(LfsIndex lfs);
  // What was written to a file being created becomes readable through its descriptors.
  [[nodiscard]] Status make_readable(LfsIndex lfs);

  // ---- fixed records (file_read.cc, file_write.cc) ----
  // Rows of records: the place of record n is out + (n - origin) * record length.
  struct ReadPart {
    RowRange range;
    std::byte* out = nullptr;
    RecordNumber origin = 0;
    FileLength file_length;  // of the file, as the read goes by: others may make its last record longer meanwhile
    std::uint64_t turn = 0;  // consecutive parts of the same turn are read by one thread
  };
  [[nodiscard]] Result<std::uint64_t> read(RecordNumber first, std::span<std::byte> out, std::uint64_t count);
  // At least one record, all inside the file as it is known here; `out` has room for them.
  [[nodiscard]] Status read_known(RecordNumber first, std::span<std::byte> out, std::uint64_t records);
  [[nodiscard]] Status read_many(std::span<File::ReadRequest> requests);
  // No messages, any thread; the port's reader must be open.
  [[nodiscard]] Status read_direct(const ReadPart& part) const;
  // Of such a part those `bytes` that the file has, as far as the read goes by; its range is even.
  [[nodiscard]] Status read_even(const ReadPart& part, std::size_t bytes, const component::Reader& reader) const;
  // All parts at once. Message requests are added to `requests` if given (and not waited for), else run here.
  [[nodiscard]] Status read_parts(std::span<const ReadPart> parts, Requests* requests);
  // Of a file being created by message only what is not sent yet can be read: kUnsupported for all else.
  [[nodiscard]] Status read_staged(const ReadPart& part) const;
  // The parts of a batch. Short rows of all LFSs lie close together in memory: each thread then takes a range of
  // records, not some of the LFSs, so that no two write to the same cache lines. They go by the length as clip() found
  // it.
  void add_parts(Range records, std::byte* out, std::vector<ReadPart>& parts_wanted);
  // Checks the request and cuts it to the file's end: records to read, which may be 0. Where there is memory for the
  // last record as it was known only, the known length stays.
  [[nodiscard]] Result<std::uint64_t> clip(RecordNumber first, std::size_t out_bytes, std::uint64_t count);

  [[nodiscard]] Status write(RecordNumber first, std::span<const std::byte> in);
  [[nodiscard]] Status write_created(RecordNumber first, std::span<const std::byte> in);
  // One LFS's range of `in`, which holds `records`. By descriptor it may run on several threads, on whole chunks.
  [[nodiscard]] Status write_range(const RowRange& range, Range records, std::span<const std::byte> in);
  void note_written(const RowRange& range);
  [[nodiscard]] Status write_committed(RecordNumber first, std::span<const std::byte> in);
  [[nodiscard]] Status overwrite(RecordNumber first, std::span<const std::byte> in, Requests& requests);
  // The same to its end. kRetry: the last record was filled up meanwhile.
  [[nodiscard]] Status overwrite_all(RecordNumber first, std::span<const std::byte> in);
  // Bytes inside one record of a committed file.
  [[nodiscard]] Status overwrite_within(RecordNumber record, std::uint32_t within, std::span<const std::byte> in);
  // Sends what is staged of one LFS; waits until little enough is under way.
  [[nodiscard]] Status send_stage(LfsIndex lfs);
  // What is staged goes out, by descriptor or by message.
  [[nodiscard]] Status flush_stage(LfsIndex lfs);
  [[nodiscard]] Status flush_all_stages();

  // ---- variable records (variable.cc) ----
  [[nodiscard]] Result<RecordBatch> read_batch(RecordNumber first, std::uint64_t count, std::size_t bytes_max);
  [[nodiscard]] Status write_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                   std::span<const std::byte> data);
  [[nodiscard]] Status write_created_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  // Sum over all components of the end offsets before record n: the byte offsets of `records` in the byte view.
  [[nodiscard]] Result<std::vector<std::uint64_t>> byte_offsets(std::span<const RecordNumber> records);
  [[nodiscard]] Status check_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) const;
  [[nodiscard]] Status overwrite_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                       std::span<const std::byte> data);

  // ---- appending (append.cc) ----
  // lengths: variable records only. `fill`: bytes, which first fill up a short last record. `at_bytes`: only if the
  // file then is that long (kRetry otherwise). `until`: if that is earlier than the session's timeout allows. Returns
  // the file's length before it.
  [[nodiscard]] Result<FileLength> append(std::span<const std::uint32_t> lengths, std::span<const std::byte> data,
                                          bool fill, const std::uint64_t* at_bytes, Time until = kNever);

  // ---- byte view (byte_view.cc) ----
  [[nodiscard]] Result<std::size_t> pread(std::span<std::byte> out, std::uint64_t offset);
  [[nodiscard]] Result<std::size_t> pwrite(std::span<const std::byte> in, std::uint64_t offset);

  std::shared_ptr<Session> session;
  access::Grant grant;
  const FileParts& parts;  // grant's
  Phase phase = Phase::kOpen;
  const bool adopted;
  bool held = false;      // nobody can change its length
  bool is_small = false;  // rows go in messages, where nothing else is asked for: no descriptors for so little
  std::optional<std::int64_t>
      modified_ns;                 // of a file being created: its time of modification; nothing: that of its commit
  bool file_length_known = false;  // `extent` is more than the server's hint
  FileLength file_length;
  bool unterminated = false;  // being created, delimited: the last record lacks its delimiter
  std::uint64_t terminated_at =
      0;  // committed, delimited: a length at which the last record was seen to have its delimiter
  RecordNumber position = 0;
  std::vector<Port> ports;  // by LFS; never resized
  Requests behind;          // writes of a file being created, on their way
  TransferCounts counts;
  std::map<File::Operation, std::unique_ptr<AsyncOperation>> operations;
  File::Operation next_operation = 1;

 private:
  friend struct PortAttacher;
  [[nodiscard]] Status check_may_commit();
  [[nodiscard]] Status add_seals(Requests& seals);
  [[nodiscard]] Status seal_all();
  [[nodiscard]] Status end_writing();
  proto::Envelope seal_request(LfsIndex lfs, const component::Tail* tail) const;
  [[nodiscard]] Status prepare_seal(LfsIndex lfs);
  [[nodiscard]] Result<Port::Way> way_to(LfsIndex lfs);
  [[nodiscard]] Result<net::Packet> attach(LfsIndex lfs, net::Packet request);

  std::uint64_t hellos_ = 0;      // of the session, when the server was last known to hold it
  std::vector<RowRange> ranges_;  // scratch of a batch
  std::vector<ReadPart> read_parts_;
};

// A tail as the catalogue tells it.
component::Tail tail_of(const proto::ComponentState& state);

}  // namespace pif::client
