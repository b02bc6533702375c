// The pieces of programs that docs/WRITING-TOOLS.md and docs/SHARING.md show, letter by letter, in what they leave out.
// They are compiled, not run: documents_test.py looks whether each piece that a document shows is here.
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pif/client/client.h"
#include "pif/client/parallel.h"
#include "pif/pattern/builders.h"
#include "pif/tool/channel.h"
#include "pif/tool/ordered_output.h"
#include "pif/tool/tool_main.h"

namespace shown {

// ---- docs/WRITING-TOOLS.md ----

pif::Status fill(pif::tool::Input& in, pif::tool::Output& out);
using Numbered = std::vector<std::pair<pif::RecordNumber, std::span<const std::byte>>>;
Numbered next_records(std::size_t count);
bool has_more_records();
pif::Status take(std::uint32_t from, const pif::net::Buffer& body);

void both_roles(pif::tool::Tool& tool, const pif::CreateOptions& options);
void both_roles(pif::tool::Tool& tool, const pif::CreateOptions& options) {
  // clang-format off
    tool.control = [options](pif::tool::Controller& controller) -> pif::Result<pif::tool::ExitCode> {
      PIF_TRY(controller.open("/in"));                        // held: nobody may write to it meanwhile
      PIF_TRY(controller.create("/out", options));            // nobody sees it yet
      return pif::tool::run_and_commit(controller, {.value = "what workers must know"});
    };
    tool.work = [](pif::tool::Worker& worker) -> pif::Status {
      PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
      PIF_TRY_VALUE(pif::tool::Output* const out, worker.output(0));
      return fill(*in, *out);                                 // what your tool does
    };
  // clang-format on
}

pif::Status ordered(pif::tool::Worker& worker, pif::tool::Output* output, const pif::FileLength& file_length);
pif::Status ordered(pif::tool::Worker& worker, pif::tool::Output* output, const pif::FileLength& file_length) {
  // clang-format off
    PIF_TRY_VALUE(pif::tool::Team team, pif::tool::Team::join(worker));
    PIF_TRY_VALUE(auto out, pif::tool::OrderedOutput::open(worker, team, *output, file_length, {}));
    return out.fill([&]() -> pif::Result<bool> {
      for (const auto& [number, record] : next_records(4096)) out.put(number, record);
      return has_more_records();
    });
  // clang-format on
}

// clang-format off
    struct Part {
      bool is_last = false;
      static auto members(auto& self) { return std::tie(self.is_last); }
    };
// clang-format on

pif::Status channels(pif::tool::Worker& worker, pif::tool::Team& team, std::uint32_t rank, pif::net::Buffer body);
pif::Status channels(pif::tool::Worker& worker, pif::tool::Team& team, std::uint32_t rank, pif::net::Buffer body) {
  std::uint32_t ended = 0;
  // clang-format off
    pif::tool::Talk talk(team);
    pif::tool::Channel<Part> parts(talk, 1, {}, [&](const pif::tool::Channel<Part>::Item& item) {
      ended += item.head.is_last ? 1 : 0;
      return take(item.from, item.body);
    });
    PIF_TRY(parts.send(rank, {false}, std::move(body)));                  // goes, or waits for room; you need not
    PIF_TRY(talk.until([&] { return parts.queued_bytes() < 8 << 20; }));  // before you make much more
    PIF_TRY(talk.until([&] { return ended == worker.width(); }));
    return talk.end();
  // clang-format on
}

// ---- docs/SHARING.md ----

void start_the_others(const std::string& token);
void wait_for_them();
void send(const std::string& token);
void use(std::span<const std::byte> bytes, std::uint64_t count);
std::span<const std::byte> block_of(std::uint32_t subfile);

pif::Status fill_together(pif::Client& client);
pif::Status fill_together(pif::Client& client) {
  // clang-format off
    pif::CreateOptions options;
    options.format = pif::Format::fixed(4096);
    PIF_TRY_VALUE(pif::File file, client.create("/result", options));
    PIF_TRY_VALUE(const std::string token, file.share());
    start_the_others(token);
    wait_for_them();
    return file.commit();
  // clang-format on
}

pif::Status be_a_member(pif::Client& client, const std::string& token, std::span<const std::byte> bytes,
                        std::uint64_t offset);
pif::Status be_a_member(pif::Client& client, const std::string& token, std::span<const std::byte> bytes,
                        std::uint64_t offset) {
  // clang-format off
    PIF_TRY_VALUE(pif::File file, client.join(token));
    PIF_TRY(file.pwrite(bytes, offset));  // anywhere, in any order, as often as you like
    return file.done();
  // clang-format on
}

pif::Result<std::uint64_t> pieces(pif::File& file, std::span<std::byte> memory);
pif::Result<std::uint64_t> pieces(pif::File& file, std::span<std::byte> memory) {
  // clang-format off
    // Column 3 of a matrix of 1,000 x 1,000 doubles, packed into memory.
    pif::File::Pieces column{pif::patterns::simple_strided(3 * 8, 8, 1000 * 8, 1000), pif::patterns::range(0, 8000)};
    PIF_TRY_VALUE(const std::uint64_t bytes, file.read_pieces(column, memory));
  // clang-format on
  return bytes;
}

pif::Status control(pif::File& file);
pif::Status control(pif::File& file) {
  // clang-format off
    PIF_TRY_VALUE(auto controller, pif::ParallelController::open(file, {.members = 7}));
    send(controller.token());
    while (true) {
      PIF_TRY_VALUE(const std::uint64_t records, controller.read(64));  // 64 rounds more
      if (records == 0) break;                                         // the end of the file
    }
    return controller.close();
  // clang-format on
}

pif::Status read_as_member(pif::Client& client, const std::string& token, std::span<std::byte> memory);
pif::Status read_as_member(pif::Client& client, const std::string& token, std::span<std::byte> memory) {
  // clang-format off
    PIF_TRY_VALUE(pif::ParallelMember member, pif::ParallelMember::join(client, token));
    while (true) {
      PIF_TRY_VALUE(const auto some, member.read(memory));  // as many of its records as are released and fit
      if (!some) break;
      use(memory, some->bytes);
    }
  // clang-format on
  return {};
}

pif::Status place(pif::Client& client);
pif::Status place(pif::Client& client) {
  // clang-format off
    pif::CreateOptions options;
    options.placed = true;
    options.width = 4;
    PIF_TRY_VALUE(pif::File file, client.create("/field", options));
    for (std::uint32_t subfile = 0; subfile < 4; ++subfile) {
      PIF_TRY_VALUE(pif::File data, client.create_fork(file, subfile, "data"));
      PIF_TRY(data.write(block_of(subfile)));
      PIF_TRY(data.commit());
    }
    return file.commit();
  // clang-format on
}

}  // namespace shown
