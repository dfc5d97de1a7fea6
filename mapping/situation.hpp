#pragma once
#include <cstdint>

#include "mapping/assignments.hpp"
#include "mapping/state.hpp"

namespace mapping {

// Ages at which something changes, all by the time that stands in a record or claim. Between two of them there is a
// quarter of E, which is at least W: what one proxy stops doing at one age, none does any more when another proxy
// begins something else at the next.
struct Ages {
  explicit Ages(const StateSettings& settings)
      : refresh(settings.expiration / 2),
        last_use(settings.expiration / 4 * 3),
        own_claim_last_use(settings.expiration / 2),
        settled_claim_end(settings.expiration),
        open_claim_end(settings.expiration * 2),
        record_end(settings.expiration * settings.protocol.record_life),
        settling(settings.slack * 3) {}

  Duration refresh;             // a record is rewritten on use from here on
  Duration last_use;            // a record is not used, nor another's claim acted on, from here on
  Duration own_claim_last_use;  // nor an own claim from here on
  Duration settled_claim_end;   // a claim that is void, or that a record confirms, is deleted from here on
  Duration open_claim_end;      // any other
  Duration record_end;          // a record is deleted from here on
  Duration settling;            // after the registration of a source whose natural slots are held
};

// Where an identity stands, and what its next step is.
struct Situation {
  enum class Kind : std::uint8_t {
    natural,
    salted,
    refresh,      // salted, and its record is to be rewritten
    confirm,      // a claim holds: write the record, after reading to the end
    renew,        // it holds a natural slot of a registered source for good: write the record, after reading to the end
    claim_again,  // for the same slot
    claim,        // for any slot
    blocked,
  };
  Kind kind;
  ProducerId mapped = no_producer_id;  // natural, salted, refresh
  std::int64_t salt = 0;               // but natural, claim, blocked
  Time time{};                         // salted, refresh: of the record
  Hindrance hindrance = Hindrance::none;
};

// Rules 3, 4 and 6 as one function of the log and the time. It decides nothing that the log does not say: a claim that
// was written is not there until it has been read.
class Judge {
 public:
  explicit Judge(const StateSettings& settings) : ages_(settings), settings_(settings) {}

  Situation judge(const Assignments& log, const IdentityKey& key, Time now) const;

  // Whose the natural slot is that keeps an identity from it.
  SourceNumber colliding(const Assignments& log, const IdentityKey& key) const;

  // A record or claim to be deleted, by a proxy that has just read to the end and is not working on that identity.
  bool is_over(const Assignments& log, const Assignments::Record& record, Time now) const;
  bool is_over(const Assignments& log, const Assignments::Claim& claim, Time now) const;
  // A claim that was read back and is of no use: another one, or a record, was first.
  bool is_lost(const Assignments& log, const Assignments::Claim& claim, Time now) const;
  bool is_own(const Nonce& nonce) const;  // of this process

 private:
  Situation judge_record(const Assignments& log, const Assignments::Record& record, Time now) const;
  Situation judge_claims(const Assignments& log, const IdentityKey& key, Time now) const;
  Situation judge_held_natural(const Assignments::Registered& owner, std::int64_t salt, Time now) const;
  Assignments::Disregard what_is_old(const IdentityKey& key, Time now) const;
  // A claim that assigns nothing, its identity's record for the same slot left aside.
  bool is_void(const Assignments& log, const Assignments::Claim& claim) const;
  bool can_act_on(const Assignments::Claim& claim, Time now) const;

  Ages ages_;
  const StateSettings& settings_;
};

}  // namespace mapping
