// Pages come before what is described within them: methods, fields and options.
var Scorer = {
  score: ([document, title, anchor, description, score, file, kind]) =>
    kind === "object" ? score - 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
