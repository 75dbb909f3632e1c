// Answers from the program that serves this page.
async function source(what, now) {
  const answer = await fetch("ask", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ what, settings: now }),
  });
  if (!answer.ok) throw new Error(answer.statusText);
  const found = await answer.json();
  if (found.refused) throw new Refused(found.refused);
  return found;
}
