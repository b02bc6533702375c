#include "simulate/bevy_workload.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "simulate/absences.h"

namespace pif::simulate {

using namespace std::chrono_literals;

namespace {

constexpr unsigned kOperationsMax = 40;
constexpr unsigned kPutsMax = 5;              // of one file that must be written again
constexpr unsigned kPatienceMax = 40;         // timeouts that one operation may take
constexpr std::uint64_t kBytesMax = 200'000;  // of one write
constexpr std::uint32_t kLineMax = 60;
constexpr std::uint32_t kLongLine = 3000;

}  // namespace

void BevyWorkload::run(unsigned operations) {
  for (unsigned i = 0; i < kOperationsMax; ++i) {
    if (i >= operations && shared_.absences->is_over()) return;
    if (!pause_up_to(dice_.chance(50) ? Duration(4s) : Duration(10ms))) return;
    const Time begin = now();
    one();
    if (now() - begin > kPatienceMax * shared_.plan.timeout)
      shared_.oracle.accuse(fmt::format("{}: an operation took {} s", name_,
                                        std::chrono::duration_cast<std::chrono::seconds>(now() - begin).count()));
  }
}

void BevyWorkload::one() {
  const std::size_t path = some_path();
  const std::uint64_t what = dice_.below(20);
  if (what < 3) {
    put(path);
  } else if (what < 11) {
    append(path);
  } else if (what < 14) {
    read(path);
  } else if (what < 17) {
    read_one(path);
  } else if (what < 19) {
    const std::size_t to = some_path();
    rename(path, to, dice_.chance(30));
  } else {
    remove(path);
  }
}

// ---- making files ----

std::uint64_t BevyWorkload::some_count() { return dice_.chance(15) ? dice_.from_to(20, 90) : dice_.from_to(1, 8); }

CreateOptions BevyWorkload::some_file() {
  constexpr std::uint32_t kLengths[] = {0, 0, 16, 100, 1000, 4096, 4096, 5000, 20000};
  CreateOptions options;
  const auto length = kLengths[dice_.below(std::size(kLengths))];
  options.format = length == 0 ? Format::lines() : Format::fixed(length);
  options.bevy = shared_.plan.bevy;
  options.exclusive = dice_.chance(20);
  options.is_small = dice_.chance(25);
  if (!dice_.chance(30)) options.nodes = some_nodes();
  return options;
}

BevyWorkload::Made BevyWorkload::some_bytes(const Format& format, std::uint64_t records, bool may_be_short) {
  Made made;
  if (records == 0) return made;
  const std::uint64_t stamp = shared_.contents->next_stamp();
  if (format.is_fixed()) {
    const std::uint64_t length = format.record_length;
    records = std::min(records, std::max<std::uint64_t>(kBytesMax / length, 1));
    const std::uint64_t without = may_be_short && dice_.chance(50) ? dice_.below(length) : 0;
    made.bytes = stamped_bytes(stamp, records * length - without);
    return made;
  }
  for (std::uint64_t i = 0; i < records; ++i) {
    const auto length = static_cast<std::uint32_t>(dice_.from_to(1, dice_.chance(3) ? kLongLine : kLineMax));
    made.lengths.push_back(i == 0 ? std::max(length, kStampLine) : length);
  }
  made.bytes = stamped_lines(stamp, made.lengths);
  return made;
}

// In some pieces of whole records.
Status BevyWorkload::fill(File& file, const Made& made) {
  const bool is_fixed = file.format().is_fixed();
  const std::uint64_t length = file.format().record_length;
  const std::uint64_t records = is_fixed ? (made.bytes.size() + length - 1) / length : made.lengths.size();
  std::span<const std::byte> rest = made.bytes;
  for (std::uint64_t first = 0; first < records;) {
    const std::uint64_t count = dice_.from_to(1, records - first);
    if (is_fixed) {
      const auto bytes = rest.first(std::min<std::size_t>(count * length, rest.size()));
      PIF_TRY(file.write(bytes));
      rest = rest.subspan(bytes.size());
    } else {
      const auto lengths = std::span(made.lengths).subspan(first, count);
      const auto bytes = rest.first(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
      PIF_TRY(file.write_batch(lengths, bytes));
      rest = rest.subspan(bytes.size());
    }
    first += count;
  }
  return {};
}

Status BevyWorkload::put_once(std::size_t path, const CreateOptions& options, const Made& made) {
  PIF_TRY_VALUE(File file, client().create(text(path), options));
  subject_ = file.id();
  shared_.oracle.created(file.id());
  const std::uint64_t length = options.format.record_length;
  shared_.contents->created(
      file.id(), options.format, made.bytes,
      options.format.is_fixed() ? (made.bytes.size() + length - 1) / length : made.lengths.size());
  PIF_TRY(fill(file, made));
  NameOp op = begin(Kind::kPublish, path);
  op.meaning = file.id();
  op.keep = options.exclusive;
  const auto committed = file.commit();
  end(std::move(op), committed);
  return committed;
}

// What is told to be written again is.
bool BevyWorkload::put(std::size_t path, bool may_abort) {
  const CreateOptions options = some_file();
  const Made made = some_bytes(options.format, dice_.chance(10) ? 0 : some_count(), true);
  if (may_abort && dice_.chance(5)) {
    auto file = client().create(text(path), options);
    if (!file) return failed("create " + text(path), file.error());
    (void)fill(*file, made);
    return file->abort().has_value();
  }
  Status done;
  for (unsigned i = 0; i < kPutsMax; ++i) {
    done = put_once(path, options, made);
    if (done || done.error().code != Code::kOldView) break;
    shared_.tell(fmt::format("{}: {} is written again: {}", name_, text(path), done.error().to_string()));
    if (!pause_up_to(500ms)) return false;
  }
  shared_.tell(fmt::format("{}: put {} as {:x}: {} bytes in records of {}", name_, text(path), subject_,
                           made.bytes.size(), options.format.record_length));
  return done.has_value() || failed("put " + text(path), done.error());
}

// ---- appending ----

// To fixed records bytes, which fill up a short last one; or, by the dice, whole records where there is none.
Status BevyWorkload::append_once(File& file) {
  const bool is_fixed = file.format().is_fixed();
  PIF_TRY_VALUE(const FileLength before, length(file));
  const bool is_whole = is_fixed && before.bytes % file.format().record_length == 0;
  const bool has_records = is_whole && dice_.chance(50);
  const Made made = some_bytes(file.format(), some_count(), !has_records);
  const auto append = shared_.contents->begin_append(file.id(), made.bytes, made.lengths.size());
  std::uint64_t first = 0;
  if (!is_fixed) {
    PIF_TRY_VALUE(first, file.append_batch(made.lengths, made.bytes));
  } else {
    const auto record = has_records ? file.append(made.bytes) : fail(Code::kInvalid, "the last record may be short");
    if (record) first = *record * file.format().record_length;
    // What was noted of an append may be published after it was seen not to be, and end in a short record.
    if (!record && record.error().code != Code::kInvalid) return fail(record.error());
    if (!record) {
      PIF_TRY_VALUE(first, file.append_bytes(made.bytes));
    }
  }
  shared_.contents->appended(append, first, now());
  shared_.tell(fmt::format("{}: append {} bytes to {:x} at {}", name_, made.bytes.size(), file.id(), first));
  return {};
}

bool BevyWorkload::append(std::size_t path) {
  auto file = open(path, Client::Mode::kWrite);
  if (!file) return false;
  for (auto times = dice_.from_to(1, 3); times > 0; --times) {
    ++shared_.operations;
    if (auto done = append_once(*file); !done) return failed(fmt::format("append to {:x}", file->id()), done.error());
    if (!self_.pause(dice_.chance(20) ? Duration(1s) : Duration(1ms))) return false;
  }
  return true;
}

// ---- reading ----

Result<FileLength> BevyWorkload::length(File& file) {
  const Time begin = now();
  PIF_TRY_VALUE(const FileLength seen, file.file_length());
  shared_.contents->saw_length(file.id(), seen, {begin, now()});
  return seen;
}

Status BevyWorkload::read_all(File& file) {
  const Time begin = now();
  PIF_TRY_VALUE(const FileLength seen, length(file));
  Contents::Bytes bytes;
  if (file.format().is_fixed()) {
    bytes.resize(seen.bytes);
    PIF_TRY_VALUE(const std::size_t got, file.pread(bytes, 0));
    if (got != bytes.size())
      shared_.oracle.accuse(fmt::format("file {:x}: {} of {} bytes", file.id(), got, bytes.size()));
    bytes.resize(got);
  } else if (seen.records > 0) {
    PIF_TRY_VALUE(const RecordBatch batch, file.read_batch_at(0, seen.records));
    if (batch.lengths.size() != seen.records || batch.data.size() != seen.bytes)
      shared_.oracle.accuse(fmt::format("file {:x}: {} of {} records, {} of {} bytes", file.id(), batch.lengths.size(),
                                        seen.records, batch.data.size(), seen.bytes));
    bytes = batch.data;
  }
  shared_.oracle.count_records(seen.records);
  shared_.contents->saw_all(file.id(), bytes, {begin, now()});
  return {};
}

Status BevyWorkload::read_single(File& file) {
  PIF_TRY_VALUE(const FileLength seen, length(file));
  if (seen.records == 0) return {};
  const RecordNumber record = dice_.chance(40) ? seen.records - 1 : dice_.below(seen.records);
  shared_.oracle.count_records(1);
  if (!file.format().is_fixed()) {
    PIF_TRY_VALUE(const RecordBatch batch, file.read_batch_at(record, 1));
    if (batch.lengths.size() != 1)
      shared_.oracle.accuse(fmt::format("file {:x}: record {} of {} is not there", file.id(), record, seen.records));
    else
      shared_.contents->saw_line(file.id(), record, batch.data);
    return {};
  }
  const std::uint64_t begin = record * file.format().record_length;
  Contents::Bytes bytes(file.format().record_length);
  if (record + 1 < seen.records && dice_.chance(50)) {
    PIF_TRY_VALUE(const std::uint64_t records, file.read_at(record, bytes, 1));
    if (records != 1) shared_.oracle.accuse(fmt::format("file {:x}: record {} is not there", file.id(), record));
    if (records == 1) shared_.contents->saw_bytes(file.id(), begin, bytes);
    return {};
  }
  PIF_TRY_VALUE(const std::size_t got, file.pread(bytes, begin));
  if (got < std::min<std::uint64_t>(bytes.size(), seen.bytes - begin))
    shared_.oracle.accuse(fmt::format("file {:x}: {} bytes of record {}", file.id(), got, record));
  bytes.resize(got);
  shared_.contents->saw_bytes(file.id(), begin, bytes);
  return {};
}

bool BevyWorkload::read(std::size_t path) {
  auto file = open(path, Client::Mode::kRead);
  if (!file) return false;
  const auto done = read_all(*file);
  shared_.tell(fmt::format("{}: read {:x}: {}", name_, file->id(), done ? "ok" : done.error().to_string()));
  return done.has_value() || failed("read " + text(path), done.error());
}

bool BevyWorkload::read_one(std::size_t path) {
  auto file = open(path, Client::Mode::kRead);
  if (!file) return false;
  const auto done = read_single(*file);
  return done.has_value() || failed("read a record of " + text(path), done.error());
}

}  // namespace pif::simulate
