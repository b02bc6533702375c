// Every operation of an LFS: requests with good and bad rights, over Unix sockets and ZeroMQ, with passing time,
// restarts and power cuts, to the real LFS over a disk and a catalogue in memory. Afterwards its checker must find
// nothing.
#include <spdlog/spdlog.h>

#include "lfs_world.h"

namespace {

using namespace pif;
using fuzz::must;
using proto::Envelope;

constexpr int kStepsMax = 24;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  fuzz::Surroundings nobody;
  fuzz::LfsWorld world(fuzz::new_root().copy(), nobody);
  for (int i = 0; i < kStepsMax && !in.empty(); ++i) {
    const unsigned what = in.byte();
    world.step(what, in);
    if ((what & fuzz::kNotYet) == 0) world.run();
  }
  const auto damages = world.finish();
  for (const auto& damage : damages) std::fprintf(stderr, "damage: %s\n", damage.c_str());
  must(damages.empty(), "the root is whole");
  return 0;
}

namespace {

using fuzz::Fill;
using fuzz::set_file_length;
using fuzz::variable;
constexpr unsigned kFile = 7;
constexpr unsigned kGood = fuzz::kGoodCapability;

std::string ask(unsigned rights, const Fill& fill, std::string_view body = {}, unsigned flags = kGood,
                unsigned peer = 0) {
  Envelope envelope;
  fill(envelope);
  return fuzz::request_step(peer << fuzz::kPeerShift, flags, rights, kFile, envelope, body);
}

proto::ComponentShape shape_of(const Format& format, unsigned width = 1) {
  proto::ComponentShape out;
  out.set_file(kFile);
  out.mutable_format()->set_kind(static_cast<std::uint32_t>(format.kind));
  out.mutable_format()->set_record_length(format.record_length);
  out.mutable_format()->set_delimiter(format.delimiter);
  for (unsigned node = 1; node <= width; ++node) out.mutable_layout()->add_nodes(node);
  return out;
}

std::string write_rows(const Format& format, std::uint64_t first, std::uint64_t count, std::string_view body) {
  return ask(
      kMayCreate,
      [=](Envelope& e) {
        *e.mutable_write()->mutable_shape() = shape_of(format);
        e.mutable_write()->set_first(first);
        e.mutable_write()->set_count(count);
      },
      body);
}
std::string seal(const Format& format, std::uint64_t rows, std::uint64_t bytes) {
  return ask(kMayCreate, [=](Envelope& e) {
    *e.mutable_seal()->mutable_shape() = shape_of(format);
    e.mutable_seal()->set_rows(rows);
    e.mutable_seal()->set_bytes(bytes);
    set_file_length(*e.mutable_seal()->mutable_file(), rows, bytes);
  });
}
std::string settle(bool commit) {
  return ask(
      0,
      [=](Envelope& e) { commit ? e.mutable_settle()->add_committed(kFile) : e.mutable_settle()->add_removed(kFile); },
      {}, kGood | fuzz::kAnyFile);
}
std::string read_rows(std::uint64_t first, std::uint64_t count, std::uint32_t stride = 0, unsigned flags = kGood,
                      unsigned peer = 0) {
  return ask(
      kMayRead,
      [=](Envelope& e) {
        e.mutable_read()->set_file(kFile);
        e.mutable_read()->set_first(first);
        e.mutable_read()->set_count(count);
        e.mutable_read()->set_stride(stride);
      },
      {}, flags, peer);
}
std::string overwrite(std::uint64_t first, std::uint64_t count, std::string_view body, std::uint32_t within = 0,
                      std::uint32_t bytes = 0) {
  return ask(
      kMayWrite,
      [=](Envelope& e) {
        e.mutable_overwrite()->set_file(kFile);
        e.mutable_overwrite()->set_first(first);
        e.mutable_overwrite()->set_count(count);
        e.mutable_overwrite()->set_within(within);
        e.mutable_overwrite()->set_bytes(bytes);
      },
      body);
}
std::string reserve(std::uint64_t records, std::uint64_t bytes, bool fill = false) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_reserve()->set_file(kFile);
    e.mutable_reserve()->set_records(records);
    e.mutable_reserve()->set_bytes(bytes);
    e.mutable_reserve()->set_fill(fill);
  });
}
std::string append(std::uint64_t first, std::uint64_t count, std::string_view body, std::uint64_t generation,
                   std::uint64_t base, std::uint32_t within = 0) {
  return ask(
      kMayWrite,
      [=](Envelope& e) {
        e.mutable_append_rows()->set_file(kFile);
        e.mutable_append_rows()->set_first(first);
        e.mutable_append_rows()->set_count(count);
        e.mutable_append_rows()->set_generation(generation);
        e.mutable_append_rows()->set_within(within);
        set_file_length(*e.mutable_append_rows()->mutable_base(), base, base * 10);
      },
      body);
}
std::string append_done(std::uint64_t ticket, std::uint64_t generation) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_append_done()->set_file(kFile);
    e.mutable_append_done()->set_ticket(ticket);
    e.mutable_append_done()->set_generation(generation);
  });
}
std::string append_cancel(std::uint64_t ticket) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_append_cancel()->set_file(kFile);
    e.mutable_append_cancel()->set_ticket(ticket);
  });
}
std::string manage(const Fill& fill) { return ask(0, fill, {}, kGood | fuzz::kAnyFile); }

}  // namespace

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string restart = restart_step();
  const std::string crash = power_cut_step();
  const std::string second = time_step(255);
  const Format ten = Format::fixed(10);
  const Format lines = Format::lines();
  const std::string rows(50, 'r');
  const std::string put = write_rows(ten, 0, 5, rows) + seal(ten, 5, 50) + settle(true);
  const std::string text = variable({"one\n", "", "three\n"});
  const std::string put_lines = write_rows(lines, 0, 3, text) + seal(lines, 3, 10) + settle(true);
  const std::uint64_t ticket = (std::uint64_t{1} << 24) + 1;  // a generation, then a number within it
  const std::uint64_t second_ticket = (std::uint64_t{2} << 24) + 1;
  const auto attach = [](Envelope& e) { e.mutable_attach()->set_file(kFile); };
  const auto attach_new = [](Envelope& e) { *e.mutable_attach()->mutable_create() = shape_of(Format::fixed(10)); };
  const auto length = [](Envelope& e) { e.mutable_length()->set_file(kFile); };
  const auto bytes = [](Envelope& e) {
    e.mutable_read_bytes()->set_file(kFile), e.mutable_read_bytes()->set_bytes(99);
  };
  const auto offsets = [](Envelope& e) { e.mutable_offsets()->set_file(kFile), e.mutable_offsets()->add_rows(1); };
  const auto flush = [](Envelope& e) { e.mutable_flush(); };
  const auto list = [](Envelope& e) { e.mutable_list_components()->set_limit(5); };
  const auto check = [](Envelope& e) {
    e.mutable_check_component()->set_file(kFile), e.mutable_check_component()->set_sums(true);
  };
  const auto spawn = [](Envelope& e) { e.mutable_spawn()->set_job(5), e.mutable_spawn()->set_program("/bin/true"); };
  const auto job_wait = [](Envelope& e) { e.mutable_job_wait()->set_job(5), e.mutable_job_wait()->set_hold_ms(100); };
  const auto job_kill = [](Envelope& e) { e.mutable_job_kill()->set_job(5); };
  const auto worker = [](Envelope& e) { e.mutable_worker_result()->set_result("x"); };
  return {
      {"fixed", put + read_rows(0, 5) + read_rows(1, 2, 2) + ask(kMayRead, bytes) + ask(kMayRead, length) +
                    ask(kMayRead, attach)},
      {"lines", put_lines + read_rows(0, 3) + read_rows(0, 2, 2) + ask(kMayRead, offsets) + ask(kMayRead, length)},
      {"write-again", write_rows(ten, 3, 2, rows.substr(0, 20)) + write_rows(ten, 0, 3, rows.substr(0, 30)) +
                          seal(ten, 5, 50) + seal(ten, 5, 50)},
      {"far", write_rows(ten, 1u << 30, 1, rows.substr(0, 10)) + seal(ten, 1, 10)},
      {"farther", write_rows(ten, std::uint64_t{1} << 58, 1, rows.substr(0, 10))},
      {"attach-new", ask(kMayCreate, attach_new) + write_rows(ten, 0, 5, rows) + seal(ten, 5, 50)},
      {"unsealed", write_rows(ten, 0, 5, rows) + restart + seal(ten, 5, 50)},
      {"power-cut", put + overwrite(1, 1, "0123456789") + crash + read_rows(0, 5)},
      {"overwrite", put + overwrite(0, 5, std::string(50, 'w')) + overwrite(2, 1, "ab", 3, 2) + manage(flush) +
                        restart + read_rows(0, 5)},
      {"overwrite-lines", put_lines + overwrite(0, 2, variable({"ONE\n", ""})) + crash + read_rows(0, 3)},
      {"append",
       put + reserve(2, 20) + append(5, 2, rows.substr(0, 20), 1, 5) + append_done(ticket, 1) + read_rows(0, 7)},
      {"append-lines", put_lines + reserve(1, 3) + append(3, 1, variable({"ab\n"}), 1, 3) + append_done(ticket, 1) +
                           crash + read_rows(0, 4)},
      {"append-late", put + reserve(2, 20) + append(5, 1, rows.substr(0, 10), 1, 5) + second + reserve(1, 10) +
                          append(5, 1, rows.substr(0, 10), 2, 5)},
      {"append-cancel", put + reserve(2, 20) + append(5, 1, rows.substr(0, 10), 1, 5) + append_cancel(ticket) +
                            reserve(1, 10) + append(5, 1, rows.substr(10, 10), 2, 5) + append_done(second_ticket, 2) +
                            read_rows(0, 6)},
      {"append-fill", write_rows(ten, 0, 2, rows.substr(0, 15)) + seal(ten, 2, 15) + settle(true) +
                          reserve(0, 9, true) + append(1, 1, "FILL", 1, 2, 5)},
      {"remove", put + settle(false) + read_rows(0, 1) + write_rows(ten, 0, 5, rows)},
      {"manage", put + manage(list) + manage(check) + manage(flush)},
      {"bad-rights", put + read_rows(0, 1, 0, 0) + read_rows(0, 1, 0, kGood | kOtherUser) +
                         read_rows(0, 1, 0, kGood | kExpired) + ask(kMayCreate, length)},
      {"zmq", put + read_rows(0, 1, 0, kGood, 1) + read_rows(0, 1, 0, kGood | kGoodCredential, 1)},
      {"jobs", ask(0, spawn) + ask(0, job_wait) + second + ask(0, job_kill) + ask(0, worker)},
      {"other-ops", ask(0, [](Envelope& e) { e.mutable_hello(); }) + ask(0, [](Envelope& e) { e.mutable_stats(); }) +
                        ask(0, [](Envelope& e) { e.mutable_stat(); })},
  };
}
