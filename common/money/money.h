// Money: integer nano-USD in the ledger, integer pico-USD per token in prices (decision 10).
// No floating point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

// Wide enough for any product of a token count and a rate.
__extension__ typedef __int128 Int128;

inline constexpr int64_t kNanoPerUsd = 1'000'000'000;
inline constexpr int64_t kPicoPerNano = 1'000;

// Above any price (0.1 USD per token). With the largest token count every cost in nano-USD still
// fits 64 bits.
inline constexpr int64_t kMaxRatePicoUsd = 100'000'000'000;

// The rates of one model, pico-USD per token. From 0 to kMaxRatePicoUsd.
struct Rates {
  int64_t input_pico_usd = 0;
  int64_t output_pico_usd = 0;
  friend bool operator==(const Rates&, const Rates&) = default;
};

// Exact price of these token counts in pico-USD. Counts must not be negative.
Int128 CostPicoUsd(const Rates& rates, int64_t input_tokens, int64_t output_tokens);

// The charge for an exact cost: rounded down, once per request. Saturates at the int64 range.
int64_t ChargeNanoUsd(Int128 cost_pico_usd);
// The hold for an exact cost: rounded up. Saturates at the int64 range.
int64_t HoldNanoUsd(Int128 cost_pico_usd);

// The number of output tokens that the authorized amount covers besides the input. Never negative;
// INT64_MAX if output is free and the input is covered.
int64_t OutputTokensAffordable(const Rates& rates, int64_t input_tokens,
                               int64_t authorized_nano_usd);

// "12.5" for 12,500,000,000 nano-USD: exact, no trailing zeros, no exponent.
std::string NanoToDecimalUsd(int64_t nano_usd);
// "0.15" per million tokens for 150,000 pico-USD per token: exact, no trailing zeros.
std::string PicoPerTokenToUsdPerMillion(int64_t pico_usd);
// "0.00000015" per token for the same rate.
std::string PicoPerTokenToUsdPerToken(int64_t pico_usd);
// A pico-USD amount of any size as an exact decimal.
std::string PicoToDecimalUsd(Int128 pico_usd);

// Parses a decimal USD amount ("5", "0.25", "-3.1") with at most 9 decimals. nullopt if the text is
// malformed or out of range.
std::optional<int64_t> ParseDecimalUsdToNano(std::string_view text);
// Parses a price in USD per million tokens with at most 6 decimals into pico-USD per token. A
// negative price is nullopt, too.
std::optional<int64_t> ParseUsdPerMillionToPico(std::string_view text);
// The highest rate in pico-USD per token that is not above this price, which is a decimal of any
// length, with or without an exponent ("0.15", "1.5e-1"). Saturates. nullopt if the text is
// malformed or negative.
std::optional<int64_t> ParseUsdPerMillionDownToPico(std::string_view text);

}  // namespace tollgate
