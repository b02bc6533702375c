#include "simulate/together_workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/pattern/builders.h"
#include "simulate/absences.h"

namespace pif::simulate {

using namespace std::chrono_literals;

namespace {

constexpr unsigned kOperationsMax = 60;
constexpr unsigned kCommitsMax = 20;   // until it gives the file up
constexpr unsigned kPatienceMax = 40;  // timeouts that one operation may take
constexpr std::uint64_t kPieceMax = 700;
constexpr std::uint64_t kPiecesMax = 40;

}  // namespace

void TogetherWorkload::run(unsigned operations) {
  for (unsigned i = 0; i < kOperationsMax; ++i) {
    const bool is_over = shared_.absences == nullptr || shared_.absences->is_over();
    if (i >= operations && is_over) break;
    if (!pause_up_to(dice_.chance(10) ? Duration(4s) : Duration(30ms))) return;
    const Time begin = now();
    one();
    if (now() - begin > kPatienceMax * shared_.plan.timeout)
      shared_.oracle.accuse(fmt::format("{}: an operation took {} s", name_,
                                        std::chrono::duration_cast<std::chrono::seconds>(now() - begin).count()));
  }
  finish();
}

void TogetherWorkload::one() {
  ++shared_.operations;
  if (takes_part())
    one_in_file();
  else
    one_alone();
}

void TogetherWorkload::one_alone() {
  const std::size_t path = some_path();
  const std::uint64_t what = dice_.below(20);
  if (what < 12) {
    if (together().invitations().empty() || dice_.chance(20))
      begin_file(path, dice_.chance(90));
    else
      join();
  } else if (what < 17) {
    read(path);
  } else if (what < 19) {
    const std::size_t to = some_path();
    rename(path, to, dice_.chance(30));
  } else {
    remove(path);
  }
}

void TogetherWorkload::one_in_file() {
  const std::uint64_t what = dice_.below(40);
  if (is_done_ ? what < 24 : what >= 36) {
    commit();
  } else if (what < 20) {
    write();
  } else if (what < 30) {
    read_unfinished();
  } else if (what < 32) {
    if (const auto synced = file_->sync(); !synced) failed_in_file("sync", synced.error());
  } else if (what < 34) {
    drop_gone();
  } else {
    if (done() && dice_.chance(30)) leave();
  }
}

// What it takes part in is committed by the last one of those who get so far, or given up.
void TogetherWorkload::finish() {
  if (takes_part() && dice_.chance(20) && done()) leave();
  for (unsigned i = 0; takes_part() && i < kCommitsMax; ++i) {
    if (commit()) return;
    if (takes_part()) drop_gone();
    if (!pause_up_to(2s)) return;
  }
  if (!takes_part()) return;
  if (file_->abort()) together().given_up(file_->id());
  leave();
}

// ---- files, and who takes part ----

bool TogetherWorkload::begin_file(std::size_t path, bool shares) {
  constexpr std::uint32_t kLengths[] = {1, 16, 100, 1000, 4096, 5000, 20000};
  CreateOptions options;
  options.format = Format::fixed(kLengths[dice_.below(std::size(kLengths))]);
  options.bevy = shared_.plan.bevy;
  options.exclusive = dice_.chance(10);
  options.is_small = dice_.chance(25);
  if (options.bevy == 0 && dice_.chance(30))
    options.width = static_cast<std::uint32_t>(dice_.from_to(1, shared_.plan.lfss));
  if (options.bevy > 0 && dice_.chance(70)) options.nodes = some_nodes();
  auto made = client().create(text(path), options);
  if (!made) return failed("create " + text(path), made.error());
  file_.emplace(std::move(*made));
  path_ = path;
  reach_ = dice_.chance(15) ? 400'000 : dice_.chance(50) ? 40'000 : 3000;
  is_shared_ = false;
  is_done_ = false;
  subject_ = file_->id();
  shared_.oracle.created(file_->id());
  together().created(file_->id(), options.format.record_length, name_, shared_.cluster.power_losses());
  shared_.tell(fmt::format("{}: begins {:x} at {}, records of {}", name_, file_->id(), text(path),
                           options.format.record_length));
  if (dice_.chance(30) && !write()) return false;
  if (!shares) return true;
  const auto token = file_->share();
  if (!token) return failed_in_file("share", token.error());
  is_shared_ = true;
  together().invite({file_->id(), path, reach_, *token});
  return true;
}

bool TogetherWorkload::join(std::uint64_t wanted) {
  auto all = together().invitations();
  std::erase_if(all, [wanted](const auto& one) { return wanted != 0 && one.file != wanted; });
  if (all.empty()) return false;
  const auto& one = all[dice_.below(all.size())];
  together().begin_join(one.file, name_);
  auto joined = client().join(one.token);
  if (!joined) return failed(fmt::format("join {:x}", one.file), joined.error());
  file_.emplace(std::move(*joined));
  path_ = one.path;
  reach_ = one.reach;
  is_shared_ = true;
  is_done_ = false;
  subject_ = file_->id();
  together().joined(file_->id(), name_, now());
  shared_.tell(fmt::format("{}: joins {:x}", name_, file_->id()));
  return true;
}

bool TogetherWorkload::failed_in_file(const std::string& what, const Error& error) {
  failed(fmt::format("{} {:x}", what, file_->id()), error);
  const bool is_over = error.code == Code::kStaleFile || error.code == Code::kCancelled;
  if (is_over && what == "commit") together().given_up(file_->id());
  if (error.code == Code::kOldView && dice_.chance(70) && file_->abort()) together().given_up(file_->id());
  if (is_over || error.code == Code::kOldView || error.code == Code::kExists) leave();
  return false;
}

bool TogetherWorkload::done() {
  if (!is_shared_) return true;
  together().begin_done(file_->id(), name_);
  is_done_ = true;  // or may be: it writes no more
  const auto said = file_->done();
  return said.has_value() || failed_in_file("done", said.error());
}

void TogetherWorkload::drop_gone() {
  if (!is_shared_) return;
  const auto all = file_->members();
  if (!all) {
    failed_in_file("members", all.error());
    return;
  }
  for (const auto& one : *all) {
    const bool is_gone = one.state == File::Member::State::kGone;
    if (!is_gone && !dice_.chance(2)) continue;
    together().begin_drop(file_->id(), one.program);
    const auto dropped = file_->drop(one.number);
    shared_.tell(fmt::format("{}: drops {} of {:x}", name_, one.program, file_->id()));
    if (!dropped) return (void)failed_in_file("drop", dropped.error());
  }
}

bool TogetherWorkload::commit() {
  NameOp op = begin(Kind::kPublish, path_);
  op.meaning = file_->id();
  together().begin_commit(file_->id(), now());
  together().begin_done(file_->id(), name_);
  is_done_ = is_shared_;
  const auto committed = file_->commit();
  op.end = now();
  shared_.tell(
      fmt::format("{}: commits {:x}: {}", name_, file_->id(), committed ? "ok" : committed.error().to_string()));
  if (!committed) {
    together().not_committed(file_->id(), std::move(op), is_unknown(committed.error()));
    return failed_in_file("commit", committed.error());
  }
  together().committed(file_->id(), std::move(op));
  leave();
  return true;
}

// ---- writing and reading ----

TogetherWorkload::Places TogetherWorkload::some_pieces(std::uint64_t reach, std::uint64_t most) {
  Places places;
  places.how = Places::How::kPieces;
  const std::uint64_t size = dice_.from_to(1, std::min(dice_.chance(50) ? 64 : kPieceMax, reach));
  const std::uint64_t stride = size + (dice_.chance(20) ? 0 : dice_.below(500));
  const std::uint64_t first = dice_.below(reach - size + 1);
  const std::uint64_t fit = std::min((reach - first - size) / stride + 1, most / size + 1);
  const std::uint64_t count = dice_.from_to(1, std::min(fit, kPiecesMax));
  const bool falls = dice_.chance(20), is_list = dice_.chance(40);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = is_list ? dice_.below(reach - size + 1) : first + (falls ? count - 1 - i : i) * stride;
    places.ranges.push_back({at, size});
  }
  places.bytes = count * size;
  std::vector<patterns::Piece> list;
  for (const Range& range : places.ranges) list.push_back({static_cast<std::int64_t>(range.offset), range.size});
  const auto step = falls ? -static_cast<std::int64_t>(stride) : static_cast<std::int64_t>(stride);
  places.pieces.file =
      is_list ? patterns::list(list) : patterns::simple_strided(list.front().offset, size, step, count);
  places.pieces.memory = patterns::range(0, places.bytes);
  return places;
}

TogetherWorkload::Places TogetherWorkload::some_places(std::uint64_t reach, std::uint64_t most) {
  if (dice_.chance(45)) return some_pieces(reach, most);
  Places places;
  const std::uint64_t length = file_ ? file_->format().record_length : 1;
  Range range;
  range.offset = dice_.chance(10) ? 0 : dice_.below(reach);
  range.size = dice_.from_to(1, std::min(reach - range.offset, most));
  if (is_shared_ && dice_.chance(30) && range.size >= length && range.offset / length * length + length <= reach) {
    places.how = Places::How::kRecords;
    range.offset = range.offset / length * length;
    range.size = range.size / length * length;
  }
  places.ranges = {range};
  places.bytes = range.size;
  return places;
}

Status TogetherWorkload::write_to(const Places& places, std::span<const std::byte> bytes) {
  switch (places.how) {
    case Places::How::kRecords: return file_->write_at(places.ranges[0].offset / file_->format().record_length, bytes);
    case Places::How::kPieces: return file_->write_pieces(places.pieces, bytes);
    default: break;
  }
  PIF_TRY_VALUE(const std::size_t written, file_->pwrite(bytes, places.ranges[0].offset));
  if (written != bytes.size()) shared_.oracle.accuse(fmt::format("{} of {} bytes were written", written, bytes.size()));
  return {};
}

bool TogetherWorkload::write() {
  const Places places = some_places(reach_, dice_.chance(20) ? reach_ : std::max<std::uint64_t>(reach_ / 10, 1));
  const auto number = together().begin_write(file_->id(), name_, places.ranges, now());
  Bytes bytes;
  for (const Range& range : places.ranges)
    for (std::uint64_t i = 0; i < range.size; ++i) bytes.push_back(Together::byte_of(number, range.offset + i));
  const auto written = write_to(places, bytes);
  shared_.tell(fmt::format("{}: writes {} of {:x}: {} pieces, {} bytes from {} on: {}", name_, number, file_->id(),
                           places.ranges.size(), bytes.size(), places.ranges[0].offset,
                           written ? "ok" : written.error().to_string()));
  if (!written) return failed_in_file("write", written.error());
  together().wrote(number, now());
  return true;
}

Result<std::uint64_t> TogetherWorkload::read_from(File& file, const Places& places, std::span<std::byte> out) {
  if (places.how == Places::How::kPieces) return file.read_pieces(places.pieces, out);
  const std::uint64_t length = file.format().record_length;
  if (places.how == Places::How::kRecords) {
    PIF_TRY_VALUE(const std::uint64_t records,
                  file.read_at(places.ranges[0].offset / length, out, out.size() / length));
    return records * length;
  }
  return file.pread(out, places.ranges[0].offset);
}

bool TogetherWorkload::read_unfinished() {
  if (!is_shared_) return true;  // its end is where it was written last
  const Places places = some_places(reach_, reach_);
  Bytes bytes(places.bytes);
  const Time begin = now();
  const auto got = read_from(*file_, places, bytes);
  if (!got) return failed_in_file("read", got.error());
  if (*got != bytes.size())
    shared_.oracle.accuse(fmt::format("file {:x}: {} of {} bytes were read", file_->id(), *got, bytes.size()));
  shared_.oracle.count_records(1);
  std::size_t at = 0;
  for (const Range& range : places.ranges) {
    together().saw_unfinished(file_->id(), range.offset, std::span(bytes).subspan(at, range.size), {begin, now()},
                              shared_.cluster.power_losses());
    at += range.size;
  }
  return true;
}

Status TogetherWorkload::read_committed(File& file) {
  const Time begin = now();
  PIF_TRY_VALUE(const FileLength length, file.file_length());
  together().saw_length(file.id(), length);
  Bytes bytes(length.bytes);
  PIF_TRY_VALUE(const std::size_t got, file.pread(bytes, 0));
  if (got != bytes.size())
    shared_.oracle.accuse(fmt::format("file {:x}: {} of {} bytes were read", file.id(), got, bytes.size()));
  shared_.oracle.count_records(1);
  together().saw_committed(file.id(), 0, bytes, {begin, now()});
  return {};
}

bool TogetherWorkload::read(std::size_t path) {
  auto file = open(path, Client::Mode::kRead);
  if (!file) return false;
  const auto done = read_committed(*file);
  shared_.tell(fmt::format("{}: read {:x}: {}", name_, file->id(), done ? "ok" : done.error().to_string()));
  return done.has_value() || failed("read " + text(path), done.error());
}

}  // namespace pif::simulate
