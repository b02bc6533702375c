#include "simulate/workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "../../tools/pif_copy/copy.h"
#include "libtool/sim_tools.h"
#include "pif/pattern/builders.h"

namespace pif::simulate {

using namespace std::chrono_literals;

namespace {

// Lengths and bytes of `count` records of one write.
struct Batch {
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
};

Batch batch_of(std::uint64_t write, std::uint32_t count, const std::function<std::uint32_t(std::uint32_t)>& length_of) {
  Batch out;
  for (std::uint32_t i = 0; i < count; ++i) {
    out.lengths.push_back(length_of(i));
    const std::size_t at = out.data.size();
    out.data.resize(at + out.lengths.back());
    fill_record({write, i}, std::span(out.data).subspan(at));
  }
  return out;
}

Batch batch_for(const Format& format, std::uint64_t write, std::uint32_t count) {
  return batch_of(write, count, [&](std::uint32_t i) {
    return format.is_fixed() ? format.record_length : variable_length({write, i});
  });
}

}  // namespace

void Workload::run(unsigned operations) {
  for (unsigned i = 0; i < operations; ++i) {
    if (!pause_up_to(dice_.chance(10) ? Duration(3s) : Duration(10ms))) return;
    one();
  }
}

void Workload::one() {
  const std::size_t path = some_path();
  switch (dice_.below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: put(path); return;
    case 5:
    case 6:
    case 7:
    case 8: append(path); return;
    case 9:
    case 10:
    case 11: overwrite(path); return;
    case 12:
    case 13:
    case 14:
    case 15: read(path, dice_.chance(50)); return;
    case 16:
    case 17: {
      const std::size_t to = some_path();
      rename(path, to, dice_.chance(30));
      return;
    }
    case 18: remove(path); return;
    default: copy(path); return;
  }
}

// ---- writing ----

Status Workload::fill(File& file, std::uint32_t records) {
  for (std::uint32_t first = 0; first < records;) {
    const auto count = static_cast<std::uint32_t>(dice_.from_to(1, records - first));
    const auto write = shared_.oracle.begin_put(file.id(), first, count, now());
    const Batch batch = batch_for(file.format(), write, count);
    PIF_TRY(file.format().is_fixed() ? file.write(batch.data) : file.write_batch(batch.lengths, batch.data));
    first += count;
  }
  return {};
}

bool Workload::publish(File& file, std::size_t path, std::uint32_t records, bool exclusive) {
  NameOp op = begin(Kind::kPublish, path);
  op.meaning = file.id();
  op.keep = exclusive;
  shared_.oracle.begin_commit(file.id(), records);
  const auto committed = file.commit();
  return ended(std::move(op), committed, "commit");
}

bool Workload::put(std::size_t path, bool may_abort) {
  constexpr std::uint32_t kLengths[] = {0, 16, 100, 1500, 5000};
  CreateOptions options;
  const auto length = kLengths[dice_.below(std::size(kLengths))];
  options.format = length == 0 ? Format::variable() : Format::fixed(length);
  options.exclusive = dice_.chance(20);
  if (dice_.chance(30)) options.width = static_cast<std::uint32_t>(dice_.from_to(1, shared_.plan.lfss));
  auto file = client().create(text(path), options);
  if (!file) return failed("create " + text(path), file.error());
  shared_.oracle.created(file->id());
  const auto records = static_cast<std::uint32_t>(dice_.below(dice_.chance(20) ? 60 : 10));
  if (auto filled = fill(*file, records); !filled) return failed("write", filled.error());
  if (may_abort && dice_.chance(10)) return file->abort().has_value();
  return publish(*file, path, records, options.exclusive);
}

bool Workload::put_as(std::size_t path, const Format& format, std::uint32_t records) {
  CreateOptions options;
  options.format = format;
  auto file = client().create(text(path), options);
  if (!file) return failed("create " + text(path), file.error());
  shared_.oracle.created(file->id());
  if (auto filled = fill(*file, records); !filled) return failed("write", filled.error());
  return publish(*file, path, records, false);
}

Result<RecordNumber> Workload::append_some(File& file, std::uint64_t write, std::uint32_t count) {
  const Batch batch = batch_for(file.format(), write, count);
  return file.format().is_fixed() ? file.append(batch.data) : file.append_batch(batch.lengths, batch.data);
}

bool Workload::append(std::size_t path) {
  auto file = open(path, Client::Mode::kWrite);
  if (!file) return false;
  for (auto times = dice_.from_to(1, 2); times > 0; --times) {
    ++shared_.operations;
    const auto count = static_cast<std::uint32_t>(dice_.from_to(1, 6));
    const auto write = shared_.oracle.begin_append(file->id(), count, now());
    const auto first = append_some(*file, write, count);
    if (!first) return failed(fmt::format("append {} to {:x}", write, file->id()), first.error());
    shared_.oracle.appended(write, *first, now());
    shared_.tell(fmt::format("{}: append {} of {} to {:x} at {}", name_, write, count, file->id(), *first));
    if (!self_.pause(1ms)) return false;
  }
  return true;
}

// The records one by one, every second first.
File::Pieces every_second_first(std::uint64_t first, std::uint32_t count, std::uint32_t length) {
  const auto strided = [length](std::uint64_t begin, std::uint32_t n) {
    return patterns::simple_strided(static_cast<std::int64_t>(begin) * length, length, std::int64_t{2} * length, n);
  };
  File::Pieces pieces{strided(first, (count + 1) / 2), strided(0, (count + 1) / 2), 0, 0, {}};
  if (count == 1) return pieces;
  pieces.file.levels.push_back(strided(first + 1, count / 2).levels[0]);
  pieces.memory.levels.push_back(strided(1, count / 2).levels[0]);
  return pieces;
}

Status Workload::overwrite_some(File& file, std::uint64_t first, std::uint32_t count) {
  std::vector<std::uint32_t> lengths(count, file.format().record_length);
  if (!file.format().is_fixed()) {
    PIF_TRY_VALUE(auto batch, file.read_batch_at(first, count));
    lengths = std::move(batch.lengths);
  }
  count = static_cast<std::uint32_t>(lengths.size());
  const auto write = shared_.oracle.begin_overwrite(file.id(), first, count, now());
  const Batch batch = batch_of(write, count, [&](std::uint32_t i) { return lengths[i]; });
  if (!file.format().is_fixed())
    PIF_TRY(file.write_batch_at(first, batch.lengths, batch.data));
  else if (write % 4 == 3)
    PIF_TRY(file.write_pieces(every_second_first(first, count, file.format().record_length), batch.data));
  else
    PIF_TRY(file.write_at(first, batch.data));
  shared_.oracle.acknowledged(write, now());
  shared_.tell(fmt::format("{}: overwrite {} of {} in {:x} at {}", name_, write, count, file.id(), first));
  return {};
}

bool Workload::overwrite(std::size_t path) {
  auto file = open(path, Client::Mode::kWrite);
  if (!file) return false;
  auto records = length(*file);
  if (!records) return failed("length", records.error());
  for (auto times = dice_.from_to(1, 3); times > 0 && *records > 0; --times) {
    ++shared_.operations;
    const std::uint64_t first = dice_.below(*records);
    const auto count = static_cast<std::uint32_t>(dice_.from_to(1, std::min<std::uint64_t>(6, *records - first)));
    if (auto done = overwrite_some(*file, first, count); !done) return failed("overwrite", done.error());
    if (!self_.pause(1ms)) return false;
  }
  return true;
}

bool Workload::copy(std::size_t path) {
  const std::string target = fmt::format("/{}-copy{}", name_, copies_++);
  const std::size_t to = shared_.paths.add(target);
  copy::CopyOptions wanted;
  wanted.source = text(path);
  wanted.target = target;
  if (dice_.chance(50)) wanted.width = static_cast<std::uint32_t>(dice_.from_to(1, shared_.plan.lfss));
  const auto copying = shared_.oracle.begin_copy(target, begin(Kind::kPublish, to));
  auto options = sim::sim_controller();
  tool::Controller* running = nullptr;
  subject_ = 0;
  options.on_start = [&] {
    subject_ = running->input(0).id();
    shared_.oracle.copies_into(copying, running->input(0).id(), running->output(0).id());
  };
  tool::Controller controller(client(), std::move(options));
  running = &controller;
  const auto done = copy::control(controller, wanted);
  const bool well = done && *done == tool::ExitCode::kDone;
  if (well) shared_.oracle.copied(copying, Code::kOk, now());
  if (!well) return done ? false : failed("copy", done.error());
  shared_.tell(fmt::format("{}: copied {} to {}", name_, wanted.source, target));
  return read(to, true) && dice_.chance(60) && rename(to, some_path(), false);
}

// ---- reading ----

Result<std::uint64_t> Workload::length(File& file) {
  const Time begin = now();
  PIF_TRY_VALUE(const auto file_length, file.file_length());
  shared_.oracle.saw_length(file.id(), file_length.records, {begin, now()});
  return file_length.records;
}

Status Workload::read_fixed(File& file, std::uint64_t first, std::uint64_t count) {
  const std::size_t size = file.format().record_length;
  std::vector<std::byte> bytes(count * size);
  const Time begin = now();
  PIF_TRY_VALUE(const auto got, file.read_at(first, bytes, count));
  if (got != count)
    shared_.oracle.accuse(fmt::format("file {:x}: {} of {} records from {} on", file.id(), got, count, first));
  for (std::uint64_t i = 0; i < got; ++i)
    shared_.oracle.saw_record(file.id(), first + i, std::span(bytes).subspan(i * size, size), {begin, now()});
  return {};
}

Status Workload::read_variable(File& file, std::uint64_t first, std::uint64_t count) {
  const Time begin = now();
  PIF_TRY_VALUE(const auto batch, file.read_batch_at(first, count));
  if (batch.lengths.size() != count)
    shared_.oracle.accuse(
        fmt::format("file {:x}: {} of {} records from {} on", file.id(), batch.lengths.size(), count, first));
  std::size_t at = 0;
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    shared_.oracle.saw_record(file.id(), first + i, std::span(batch.data).subspan(at, batch.lengths[i]),
                              {begin, now()});
    at += batch.lengths[i];
  }
  return {};
}

Status Workload::read_range(File& file, std::uint64_t first, std::uint64_t count) {
  return file.format().is_fixed() ? read_fixed(file, first, count) : read_variable(file, first, count);
}

Status Workload::read_some(File& file, bool all) {
  PIF_TRY_VALUE(const auto records, length(file));
  if (records == 0) return {};
  const std::uint64_t first = all ? 0 : dice_.below(records);
  const std::uint64_t count = all ? records : dice_.from_to(1, records - first);
  return read_range(file, first, count);
}

bool Workload::read_found(const std::string& path, std::uint64_t id) {
  auto file = client().open(path, Client::Mode::kRead);
  if (!file) return failed("open " + path, file.error());
  if (file->id() != id) shared_.oracle.accuse(fmt::format("{} is file {:x}", path, file->id()));
  const auto done = read_some(*file, true);
  return done.has_value() || failed("read " + path, done.error());
}

bool Workload::read(std::size_t path, bool all) {
  auto file = open(path, Client::Mode::kRead);
  if (!file) return false;
  const auto done = read_some(*file, all);
  shared_.tell(fmt::format("{}: read {:x}: {}", name_, file->id(), done ? "ok" : done.error().to_string()));
  return done.has_value() || failed("read " + text(path), done.error());
}

}  // namespace pif::simulate
