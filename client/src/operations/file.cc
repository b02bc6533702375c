// The File of pif/client/client.h: positions, and hand-over to the file's state.
#include <fmt/format.h>

#include "file/file_state.h"
#include "operations/piece_io.h"
#include "operations/started.h"
#include "session/in_use.h"

namespace pif {

using client::FileState;

namespace {

// Every call of a File.
template <typename Body>
auto in_use(const FileState& file, Body body) {
  return client::in_use(file.session->user(), body);
}

// Those that change bytes.
template <typename Body>
auto in_writing(FileState& file, Body body) {
  return in_use(file, [&] {
    auto done = body();
    file.note_written();
    return done;
  });
}

// Where what is appended begins. fill: as Appender::append.
Result<FileLength> append_fixed(FileState& state, std::span<const std::byte> in, bool fill) {
  return in_writing(state, [&]() -> Result<FileLength> {
    if (!state.parts.format.is_fixed()) {
      return fail(Code::kInvalid,
                  fmt::format("{}: records of variable length are appended in batches", state.parts.path));
    }
    return state.appender.append({}, in, fill, nullptr);
  });
}

}  // namespace

File::File() = default;
File::File(std::unique_ptr<FileState> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

const Format& File::format() const { return state_->parts.format; }
const parity::Layout& File::layout() const { return state_->parts.layout; }
std::span<const std::uint32_t> File::nodes() const {
  const auto& nodes = state_->parts.file_layout.nodes();
  return {nodes.data(), static_cast<std::size_t>(nodes.size())};
}
const std::map<std::string, std::string>& File::attributes() const { return state_->parts.attributes; }
std::uint64_t File::id() const { return state_->parts.file.value; }
bool File::is_placed() const { return state_->parts.placed; }
const Entry& File::entry() const { return state_->entry; }
Result<FileLength> File::file_length() {
  return in_use(*state_, [&]() -> Result<FileLength> {
    if (is_placed()) {
      PIF_TRY(state_->check_not_ended());
      return state_->placed.measure();
    }
    PIF_TRY(state_->check_usable());
    PIF_TRY(state_->keep_rights());
    return state_->length.get(true);
  });
}

FileLength File::file_length_seen() const { return is_placed() ? state_->placed.length() : state_->length.now(); }

RecordNumber File::position() const { return state_->position; }
Status File::seek(RecordNumber record) {
  return in_use(*state_, [&]() -> Status {
    PIF_TRY(state_->check_usable());
    PIF_TRY_VALUE(const FileLength now, state_->length.for_records(record));
    if (record > now.records) {
      return fail(Code::kInvalid, fmt::format("{}: record {} is past the end, which is at {}", state_->parts.path,
                                              record, now.records));
    }
    state_->position = record;
    return {};
  });
}

Result<std::uint64_t> File::read(std::span<std::byte> out, std::uint64_t count) {
  return in_use(*state_, [&]() -> Result<std::uint64_t> {
    PIF_TRY_VALUE(const std::uint64_t records, state_->reader.read(state_->position, out, count));
    state_->position += records;
    return records;
  });
}
Result<std::uint64_t> File::read_at(RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  return in_use(*state_, [&] { return state_->reader.read(first, out, count); });
}
Status File::write(std::span<const std::byte> in) {
  return in_writing(*state_, [&]() -> Status {
    PIF_TRY(state_->write(state_->position, in));
    const std::uint64_t length = state_->parts.format.record_length;
    state_->position += (in.size() + length - 1) / length;
    return {};
  });
}
Status File::write_at(RecordNumber first, std::span<const std::byte> in) {
  return in_writing(*state_, [&] { return state_->write(first, in); });
}

Result<RecordBatch> File::read_batch(std::uint64_t count, std::size_t bytes_max) {
  return in_use(*state_, [&]() -> Result<RecordBatch> {
    PIF_TRY_VALUE(RecordBatch batch, state_->reader.read_batch(state_->position, count, bytes_max));
    state_->position += batch.lengths.size();
    return batch;
  });
}
Result<RecordBatch> File::read_batch_at(RecordNumber first, std::uint64_t count, std::size_t bytes_max) {
  return in_use(*state_, [&] { return state_->reader.read_batch(first, count, bytes_max); });
}
Status File::write_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  return in_writing(*state_, [&]() -> Status {
    PIF_TRY(state_->write_batch(state_->position, lengths, data));
    state_->position += lengths.size();
    return {};
  });
}
Status File::write_batch_at(RecordNumber first, std::span<const std::uint32_t> lengths,
                            std::span<const std::byte> data) {
  return in_writing(*state_, [&] { return state_->write_batch(first, lengths, data); });
}

Status File::read_many(std::span<ReadRequest> requests) {
  return in_use(*state_, [&] { return state_->reader.read_many(requests); });
}

Result<std::uint64_t> File::read_pieces(const Pieces& wanted, std::span<std::byte> out) {
  return in_use(*state_, [&] { return client::read_pieces(*state_, wanted, out); });
}
Status File::write_pieces(const Pieces& wanted, std::span<const std::byte> in) {
  return in_writing(*state_, [&] { return client::write_pieces(*state_, wanted, in); });
}

Result<std::string> File::share() {
  return in_use(*state_, [&] { return state_->share(); });
}
Status File::done() {
  return in_use(*state_, [&] { return state_->done(); });
}
Result<std::vector<File::Member>> File::members() {
  return in_use(*state_, [&]() -> Result<std::vector<Member>> {
    PIF_TRY_VALUE(const auto all, state_->members());
    std::vector<Member> out;
    for (const auto& one : all) out.push_back({one.member(), static_cast<Member::State>(one.state()), one.program()});
    return out;
  });
}
Status File::drop(std::uint32_t member) {
  return in_use(*state_, [&] { return state_->drop(member); });
}
Status File::sync() {
  return in_use(*state_, [&] { return state_->sync(); });
}
Status File::preallocate(std::uint64_t bytes) {
  return in_use(*state_, [&] { return state_->preallocate(bytes); });
}

Status File::resize(std::uint64_t bytes) {
  return in_writing(*state_, [&] { return state_->resize(bytes); });
}

Result<File::Operation> File::start_read(RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  return in_use(*state_, [&] { return client::start_read(*state_, first, out, count); });
}
Result<File::Operation> File::start_write(RecordNumber first, std::span<const std::byte> in) {
  return in_writing(*state_, [&] { return client::start_write(*state_, first, in); });
}
Result<File::Operation> File::start_read_pieces(const Pieces& wanted, std::span<std::byte> out) {
  return in_use(*state_, [&] { return client::start_read_pieces(*state_, wanted, out); });
}
Result<File::Operation> File::start_write_pieces(const Pieces& wanted, std::span<const std::byte> in) {
  return in_writing(*state_, [&] { return client::start_write_pieces(*state_, wanted, in); });
}
Result<std::uint64_t> File::wait(Operation operation) {
  return in_use(*state_, [&] { return client::wait_for(*state_, operation); });
}
bool File::is_done(Operation operation) {
  const auto done = in_use(*state_, [&]() -> Result<bool> { return client::is_done(*state_, operation); });
  return !done || *done;  // wait() tells what is wrong
}

Result<RecordNumber> File::append(std::span<const std::byte> in) {
  PIF_TRY_VALUE(const FileLength start, append_fixed(*state_, in, false));
  return start.records;
}
Result<std::uint64_t> File::append_bytes(std::span<const std::byte> in) {
  PIF_TRY_VALUE(const FileLength start, append_fixed(*state_, in, true));
  return start.bytes;
}
Result<RecordNumber> File::append_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  return in_writing(*state_, [&]() -> Result<RecordNumber> {
    PIF_TRY(state_->check_usable());
    PIF_TRY(state_->check_batch(lengths, data));
    PIF_TRY_VALUE(const FileLength start, state_->appender.append(lengths, data, false, nullptr));
    return start.records;
  });
}

Result<std::size_t> File::pread(std::span<std::byte> out, std::uint64_t offset) {
  return in_use(*state_, [&] { return state_->pread(out, offset); });
}
Result<std::size_t> File::pwrite(std::span<const std::byte> in, std::uint64_t offset) {
  return in_writing(*state_, [&] { return state_->pwrite(in, offset); });
}

Status File::commit() {
  return in_use(*state_, [&] { return state_->commit(); });
}
Status File::commit_if(const FileLength& length_of_replaced) {
  return in_use(*state_, [&] { return state_->commit(length_of_replaced); });
}
Status File::abort() {
  return in_use(*state_, [&] { return state_->abort(); });
}
Status File::close() {
  return in_use(*state_, [&] { return state_->close(); });
}
TransferCounts File::transfers() const { return state_->counts; }

namespace client {

const FileParts& parts_of(File& file) { return file.state().parts; }
Status commit_sealed(File& file, const FileLength& file_length) { return file.state().commit_at_server(file_length); }
Status seal(File& file) {
  return in_use(file.state().session->user(), [&] { return file.state().seal(); });
}
Status renew_if_needed(File& file) { return file.state().keep_rights(); }
access::Grant& grant_of(File& file) { return file.state().grant; }
std::shared_ptr<Session> session_of(Client& client) { return client.session().shared_from_this(); }

}  // namespace client

}  // namespace pif
