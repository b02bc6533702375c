#include "parity/length_request.h"

#include <fmt/format.h>

#include "parity/keeping.h"
#include "pif/base/assert.h"
#include "store/published_tickets.h"

namespace pif::lfs {

access::BulkRequest length_request(const LengthAsked& asked, const Format& format,
                                   std::function<Status(const LengthAnswer&)> take) {
  PIF_ASSERT(asked.file != 0 && take != nullptr, asked.file);
  access::BulkRequest request;
  request.lfs = asked.lfs;
  request.make = [asked] {
    net::Packet packet;
    proto::Length& length = *packet.envelope.mutable_length();
    length.set_file(asked.file);
    length.set_noted(asked.is_noted);
    length.set_view(asked.view);
    length.set_at_rest(asked.is_at_rest);
    length.set_of_deputy(asked.is_of_deputy);
    return packet;
  };
  request.take = [asked, format, take = std::move(take)](net::Packet& reply) -> Status {
    const proto::LengthReply& said = reply.envelope.length_reply();
    const LengthAnswer answer{file_length_of(said.file_length()), said.generation(), said.published_tickets()};
    // Not one of before that knew `at_rest` and `of_deputy`.
    if ((asked.is_at_rest || asked.is_of_deputy) && said.view() != asked.view)
      return fail(Code::kOldView,
                  fmt::format("a length of view {} was asked for, and one of view {} came", asked.view, said.view()));
    PIF_TRY(check_file_length(format, answer.length));
    PIF_TRY(check_generation(answer.generation));
    PIF_TRY(check_tickets(answer.published_tickets));
    return take(answer);
  };
  return request;
}

Result<LengthAnswer> ask_length(Peers& peers, access::Grant& grant, const LengthAsked& asked, const Format& format) {
  LengthAnswer out;
  PIF_TRY(peers.run(grant, [&](access::Requests& requests) {
    auto request = length_request(asked, format, [&out](const LengthAnswer& answer) -> Status {
      out = answer;
      return {};
    });
    request.patient = true;
    requests.add(std::move(request));
  }));
  return out;
}

}  // namespace pif::lfs
